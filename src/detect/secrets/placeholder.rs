//! Telling random text from examples.

/// Words that nobody's random token holds, but examples do. Lower case.
const WORDS: &[&[u8]] = &[
    b"example",
    b"xxxx",
    b"placeholder",
    b"changeme",
    b"change_me",
    b"change-me",
    b"replace",
    b"redacted",
    b"dummy",
    b"sample",
    b"insert",
    b"yourtoken",
    b"your_",
    b"your-",
    b"yourkey",
    b"secrethere",
    b"goeshere",
    b"notreal",
    b"not-real",
    b"not_real",
    b"fake",
    b"deadbeef",
    b"cafebabe",
    b"0123456",
    b"1234567",
    b"abcdefg",
    b"qwerty",
    b"foobar",
    b"loremipsum",
    b"testtest",
    b"mysecret",
    b"my-secret",
    b"my_secret",
    b"mytoken",
];

/// True for texts that stand for a value instead of being one: a template (`${VAR}`, `<token>`,
/// `{{ token }}`, `%s`, `$TOKEN`), a telling word, one character or a short group repeated, a
/// counting sequence.
pub fn is_placeholder(value: &[u8]) -> bool {
    if value.len() < 4 {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    value.iter().any(|b| {
        matches!(
            b,
            b'<' | b'>' | b'{' | b'}' | b'$' | b'*' | b'`' | b' ' | b'\\'
        )
    }) || WORDS.iter().any(|word| holds_word(value, &lower, word))
        || is_repetition(value)
        || longest_run(value, |a, b| a == b) >= 6
        || longest_run(value, |a, b| b.wrapping_sub(a) == 1) >= 7
        || longest_run(value, |a, b| a.wrapping_sub(b) == 1) >= 7
}

/// True when `word` stands in `value` in one case or capitalised; random text has it in mixed case sooner than that.
fn holds_word(value: &[u8], lower: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find_iter(lower, word).any(|at| {
        let found = &value[at..at + word.len()];
        !found[1..].iter().any(u8::is_ascii_uppercase) || !found.iter().any(u8::is_ascii_lowercase)
    })
}

/// True when a group of up to eight bytes is repeated from start to end at least three times.
fn is_repetition(value: &[u8]) -> bool {
    (1..=8).any(|period| {
        value.len() >= period * 3 && value.iter().zip(&value[period..]).all(|(a, b)| a == b)
    })
}

/// The length of the longest stretch whose neighbours all satisfy `next`.
fn longest_run(value: &[u8], next: impl Fn(u8, u8) -> bool) -> usize {
    let (mut best, mut run) = (1, 1);
    for pair in value.windows(2) {
        run = if next(pair[0], pair[1]) { run + 1 } else { 1 };
        best = best.max(run);
    }
    best
}

/// Shannon entropy in bits a byte.
pub(super) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|n| **n > 0)
        .map(|&n| {
            let share = f64::from(n) / total;
            -share * share.log2()
        })
        .sum()
}

/// True when `value` looks drawn at random: no placeholder, and an entropy close to what a random text of its
/// length and alphabet has.
pub(super) fn looks_random(value: &[u8]) -> bool {
    if is_placeholder(value) {
        return false;
    }
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    let most = (value.len() as f64).log2().min(if hex { 4.0 } else { 6.0 });
    // A random text of n characters falls short of log2(n) by about 0.2–0.5 bits; words and patterns by more.
    entropy(value) >= most * if hex { 0.76 } else { 0.78 }
}

/// [`looks_random`], with letters and digits as nearly every generated token of 20 characters has, or else with more changes
/// of case than names in camel case have.
pub(super) fn looks_random_mixed(value: &[u8]) -> bool {
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits = value.iter().any(u8::is_ascii_digit);
    let changes = value
        .windows(2)
        .filter(|w| w[0].is_ascii_uppercase() != w[1].is_ascii_uppercase())
        .count();
    letters && (digits || changes * 100 >= value.len() * 38) && looks_random(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        for text in [
            "",
            "abc",
            "xxxxxxxxxxxx",
            "${TOKEN}",
            "<your token>",
            "{{ secrets.X }}",
            "AKIAIOSFODNN7EXAMPLE",
            "0123456789abcdef",
            "aaaaaaaaaaaaaaaa",
            "abcabcabcabc",
            "YOUR_TOKEN_HERE",
            "************",
            "change-me-now",
            "zyxwvutsrqp",
            "deadbeefdeadbeef",
            "1111111111111111",
            "$TOKEN",
            "REDACTED00",
        ] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["hunter2!", "k3J9vQ2pLx7Rw8Zt", "9f86d081884c7d65"] {
            assert!(!is_placeholder(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn randomness() {
        assert!(looks_random_mixed(b"k3J9vQ2pLx7Rw8ZtB5nM"));
        assert!(looks_random(b"9f86d081884c7d659a2feaa0c55ad015"));
        assert!(!looks_random(b"00000000000000000000000000000001"));
        assert!(!looks_random(b"aabbccddaabbccddaabbccddeeffeeff"));
        assert!(!looks_random_mixed(b"thisisjustalongwordwithoutdigits"));
        assert!(!looks_random(b"aaaabbbbccccddddaaaa"));
    }

    #[test]
    fn entropy_of_known_distributions() {
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-9);
        assert!(entropy(b"aaaa").abs() < 1e-9);
    }
}
