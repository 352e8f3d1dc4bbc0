//! How much two texts speak of the same thing: the words that carry meaning, and how many are shared.

use std::collections::BTreeSet;

/// Words that say nothing about a defect.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "code", "could", "do", "does", "for", "from",
    "has", "have", "here", "if", "in", "instead", "into", "is", "it", "its", "may", "might", "more", "no", "not", "of", "on",
    "only", "or", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "use", "used", "uses", "using", "was", "when", "where", "which", "while", "will", "with", "would", "you",
];

/// The words of a text that carry meaning, without their endings. Names in code are taken apart and also kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(BTreeSet<String>);

impl Words {
    /// Reads `text`; only its first 20,000 characters count.
    pub(super) fn of(text: &str) -> Self {
        let mut words = BTreeSet::new();
        let mut name = String::new();
        for c in text.chars().take(20_000).chain([' ']) {
            if c.is_alphanumeric() || c == '_' {
                name.push(c);
            } else if !name.is_empty() {
                take(&name, &mut words);
                name.clear();
            }
        }
        Self(words)
    }

    /// The share of words in common, 0 to 1: the cosine of the two sets.
    pub(super) fn similarity(&self, other: &Self) -> f64 {
        if self.0.is_empty() || other.0.is_empty() {
            return 0.0;
        }
        let shared = self.0.intersection(&other.0).count() as f64;
        shared / ((self.0.len() * other.0.len()) as f64).sqrt()
    }
}

/// A name, whole and in its parts (`parse_httpUrl`: parse, http, url).
fn take(name: &str, words: &mut BTreeSet<String>) {
    let mut part = String::new();
    let mut parts = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (was_lower && c.is_uppercase()) {
            parts.push(std::mem::take(&mut part));
        }
        if c != '_' {
            part.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    if parts.len() > 1 {
        words.insert(name.to_lowercase());
    }
    for part in parts {
        if !STOP_WORDS.contains(&part.as_str()) {
            words.insert(stem(&part).to_owned());
        }
    }
}

/// Without the endings of English inflection; crude, and the same for both texts.
fn stem(word: &str) -> &str {
    for ending in [
        "ations", "ation", "ings", "ing", "ies", "ed", "es", "ly", "s", "e", "y",
    ] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
        {
            return stem;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f64 {
        Words::of(a).similarity(&Words::of(b))
    }

    #[test]
    fn the_same_defect_in_other_words_is_nearer_than_another_defect() {
        let known =
            "The loop reads one element past the end of `items`, so it panics on the last index.";
        let same = similarity(
            known,
            "Off-by-one: indexing items[len] panics past the end of the loop",
        );
        let other = similarity(known, "The password is written to the log in plain text");
        assert!(same > 0.3 && other < 0.1, "{same} {other}");
        assert!((similarity(known, known) - 1.0).abs() < 1e-9);
        assert!((similarity("", "") - 0.0).abs() < 1e-9);
    }

    #[test]
    fn names_and_inflections_are_the_same_words() {
        assert!(similarity("parse_url fails", "parseUrl failed") > 0.5);
        assert!(similarity("copies", "copy") > 0.9);
        assert!(
            similarity("the", "the") < 0.1,
            "stop words alone say nothing"
        );
        // Letters of any script, and no panic on odd ones.
        assert!(similarity("İstanbul größe", "İSTANBUL GRÖSSE größe") > 0.3);
    }
}
