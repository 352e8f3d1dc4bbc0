//! `grep`: lines that match a regular expression.
//!
//! Only masked text is searched: a search through what is hidden would tell, hit by hit, what it is. First the hits of each
//! file are counted, on all cores; then the first of them are written out. So memory does not grow with the
//! hits, and the answer does not depend on which thread was faster.
//!
//! @ref LLP 0010#the-tool-door — the masked text is searched

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};

use super::arguments::{Arguments, echo};
use super::cache::TreeCache;
use super::content::{Content, MAX_FILE, lines};
use super::find::matcher;
use super::page::{Page, Pushed, boundary};
use super::path::{counted, shown};
use super::session::{Outcome, Shared};
use super::specs::{MAX_CONTEXT, MAX_PATTERN};
use crate::model::RepoPath;
use crate::tree::{EntryKind, TreeError};

/// What a compiled pattern and its automaton may take in memory.
const REGEX_SIZE: usize = 512 << 10;
const AUTOMATON_SIZE: usize = 4 << 20;
/// How long a search may take; clients wait for a minute.
const TIME: Duration = Duration::from_secs(20);
/// Threads at most.
const MAX_THREADS: usize = 8;
/// Files that a thread takes at a time.
const BATCH: usize = 32;
/// Bytes of a line that are searched: a slow pattern is slow a byte, and only between lines is the time looked at.
const MAX_SEARCHED: usize = 1 << 20;
/// A text up to this size is first searched as a whole.
const WHOLE: usize = 1 << 20;
/// Bytes of a line that are shown.
const MAX_SHOWN: usize = 300;
/// Bytes before the hit that are shown of a longer line.
const BEFORE_HIT: usize = 100;
/// Hits that are shown of one file, and of all.
const MAX_IN_FILE: u32 = 50;
const MAX_HITS: u32 = 300;
/// Files with hits beyond the page that are named.
const MAX_NAMED: usize = 20;

struct Search {
    regex: Regex,
    /// Whether a line can only match where the whole text does.
    whole_first: bool,
}

impl Search {
    fn new(pattern: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(pattern)
            .multi_line(true)
            .crlf(true)
            .size_limit(REGEX_SIZE)
            .dfa_size_limit(AUTOMATON_SIZE)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "pattern is too complex".to_owned(),
                // The last line says what is wrong; those before draw the pattern.
                error => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    format!("pattern {} is refused: {last}", echo(pattern))
                }
            })?;
        Ok(Self {
            regex,
            whole_first: !looks_at_ends(pattern),
        })
    }

    fn hit(&self, line: &str) -> bool {
        self.regex.is_match(&line[..boundary(line, MAX_SEARCHED)])
    }

    /// The lines that match; `None` when the time was up.
    fn count(&self, text: &str, stop: &Stop) -> Option<u32> {
        if self.whole_first && text.len() <= WHOLE && !self.regex.is_match(text) {
            return Some(0);
        }
        let mut hits = 0u32;
        for (at, line) in lines(text).enumerate() {
            if (at % 256 == 0 || line.len() > 10_000) && stop.now() {
                return None;
            }
            hits = hits.saturating_add(u32::from(self.hit(line)));
        }
        Some(hits)
    }
}

/// True when `pattern` may match a line by its ends and not find that line within a text: `\A`, `\z`, or a flag taken back.
fn looks_at_ends(pattern: &str) -> bool {
    let takes_back = |group: &str| {
        let flags = group.split([':', ')', '<']).next().unwrap_or_default();
        flags.contains('-')
    };
    pattern.contains("\\A")
        || pattern.contains("\\z")
        || pattern.split("(?").skip(1).any(takes_back)
}

/// When to give up.
struct Stop<'a> {
    gone: &'a AtomicBool,
    failed: AtomicBool,
    until: Instant,
}

impl Stop<'_> {
    fn now(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
            || self.failed.load(Ordering::Relaxed)
            || Instant::now() >= self.until
    }
}

/// What came of counting.
struct Counted {
    /// Hits of each file.
    hits: Vec<u32>,
    /// Files that were searched, or need not be.
    done: usize,
    too_large: usize,
    unreadable: usize,
    /// Words on content that is not here.
    missing: Option<String>,
}

/// Counts the hits of every file on several threads.
fn count(tree: &TreeCache, search: &Search, files: &[&RepoPath], stop: &Stop) -> Counted {
    let hits: Vec<AtomicU32> = files.iter().map(|_| AtomicU32::new(0)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (too_large, unreadable) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let missing: Mutex<Option<String>> = Mutex::default();
    let work = || {
        // A regex shared by threads has them wait for each other.
        let search = Search {
            regex: search.regex.clone(),
            whole_first: search.whole_first,
        };
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            if start >= files.len() {
                return;
            }
            for at in start..files.len().min(start + BATCH) {
                if stop.now() {
                    return;
                }
                match tree.content(files[at], true) {
                    Ok(Some(Content::Text(text))) => {
                        let Some(count) = search.count(&text, stop) else {
                            return;
                        };
                        hits[at].store(count, Ordering::Relaxed);
                    }
                    Ok(Some(Content::TooLarge(_))) => {
                        too_large.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Some(Content::Binary(_)) | None) => {}
                    Err(TreeError::Missing { hint, .. }) => {
                        stop.failed.store(true, Ordering::Relaxed);
                        *missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
                        return;
                    }
                    Err(_) => {
                        unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MAX_THREADS).min(files.len().div_ceil(BATCH));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    Counted {
        hits: hits.into_iter().map(AtomicU32::into_inner).collect(),
        done: done.into_inner(),
        too_large: too_large.into_inner(),
        unreadable: unreadable.into_inner(),
        missing: missing.into_inner().unwrap_or_else(PoisonError::into_inner),
    }
}

/// Serves `grep`.
pub(super) fn grep(shared: &Shared, arguments: &mut Arguments, gone: &AtomicBool) -> Outcome {
    let pattern = arguments.text("pattern", MAX_PATTERN)?;
    if pattern.is_empty() {
        return Err("pattern is empty".to_owned());
    }
    let search = Search::new(&pattern)?;
    let glob = arguments.optional_text("glob", MAX_PATTERN)?;
    let glob = glob.as_deref().map(matcher).transpose()?;
    let context = arguments.number("context", 0, MAX_CONTEXT)?.unwrap_or(0);
    let tree = shared.tree()?;
    let all = tree.files().map_err(|error| error.to_string())?;
    let files: Vec<&RepoPath> = all
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::File | EntryKind::Executable))
        .map(|entry| &entry.path)
        .filter(|path| {
            glob.as_ref()
                .is_none_or(|glob| glob.is_match(path.as_bytes()))
        })
        .filter(|path| !shared.settings.withheld.holds(path))
        .collect();
    let stop = Stop {
        gone,
        failed: AtomicBool::new(false),
        until: Instant::now() + TIME,
    };
    let counted = count(tree, &search, &files, &stop);
    if let Some(hint) = counted.missing {
        return Err(format!(
            "files cannot be searched: their content is not in this clone ({hint}); use diff, or read a file by name"
        ));
    }
    let mut found = Found {
        shared,
        search: &search,
        context,
        page: Page::default(),
        shown: 0,
        full: false,
    };
    let mut left = Vec::new();
    for (path, hits) in files
        .iter()
        .zip(&counted.hits)
        .filter(|(_, hits)| **hits > 0)
    {
        let shown = found.file(tree, path).min(*hits);
        if shown < *hits {
            left.push((*path, hits - shown));
        }
    }
    let mut page = found.page;
    let total: u64 = counted.hits.iter().map(|hits| u64::from(*hits)).sum();
    if total == 0 {
        page.say("[no line matches]");
    }
    say_left(&mut page, &left);
    if counted.done < files.len() {
        let not = files.len() - counted.done;
        page.say(&format!(
            "[stopped after {} s: {} not searched; narrow it with glob]",
            TIME.as_secs(),
            self::counted(not, "file")
        ));
    }
    if counted.too_large > 0 {
        let files = self::counted(counted.too_large, "file");
        page.say(&format!("[{files} over {MAX_FILE} bytes not searched]"));
    }
    if counted.unreadable > 0 {
        let files = self::counted(counted.unreadable, "file");
        page.say(&format!("[{files} could not be read]"));
    }
    Ok(page.finish())
}

/// Says which hits are not on the page.
fn say_left(page: &mut Page, left: &[(&RepoPath, u32)]) {
    if left.is_empty() {
        return;
    }
    let hits: u64 = left.iter().map(|(_, hits)| u64::from(*hits)).sum();
    let named = left.iter().take(MAX_NAMED);
    let mut names: Vec<_> = named
        .map(|(path, hits)| format!("{} {hits}", shown(path)))
        .collect();
    if left.len() > MAX_NAMED {
        names.push("…".to_owned());
    }
    let files = counted(left.len(), "file");
    page.say(&format!("[{hits} more in {files}: {}]", names.join(", ")));
}

/// The hits as they are written out.
struct Found<'a> {
    shared: &'a Shared,
    search: &'a Search,
    context: u32,
    page: Page,
    shown: u32,
    full: bool,
}

impl Found<'_> {
    /// Writes out the first hits of a file; gives how many.
    fn file(&mut self, tree: &TreeCache, path: &RepoPath) -> u32 {
        if self.full || self.shown >= MAX_HITS {
            return 0;
        }
        let Ok(Some(Content::Text(text))) = tree.content(path, true) else {
            return 0;
        };
        let most = MAX_IN_FILE.min(MAX_HITS - self.shown);
        let lines: Vec<&str> = lines(&text).collect();
        let mut hits = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if hits.len() >= most as usize {
                break;
            }
            if self.search.hit(line) {
                hits.push(at);
            }
        }
        // A name alone, at the end of a page, would look like an empty file.
        if hits.is_empty() || self.page.push("", &shown(path)) != Pushed::Whole {
            self.full = true;
            return 0;
        }
        let mut written = 0;
        for block in blocks(&hits, self.context as usize, lines.len()) {
            let start = *block.start();
            for at in block {
                let is_hit = hits.binary_search(&at).is_ok();
                let (line, whole) = self.cut(lines[at], is_hit);
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                let label = format!("{number}{}\t", if is_hit { ":" } else { "-" });
                let gap = at == start && start > 0 && self.context > 0 && written > 0;
                if gap {
                    self.page.say("--");
                }
                if self.page.push(&label, &line) != Pushed::Whole {
                    self.full = true;
                    return written;
                }
                written += u32::from(is_hit);
                self.shown += u32::from(is_hit);
                if whole {
                    self.shared.saw(path, number..=number);
                }
            }
        }
        written
    }

    /// As much of a line as is shown, around its hit; true when that is all of it.
    fn cut(&self, line: &str, is_hit: bool) -> (String, bool) {
        if line.len() <= MAX_SHOWN {
            return (line.to_owned(), true);
        }
        let found = is_hit
            .then(|| {
                self.search
                    .regex
                    .find(&line[..boundary(line, MAX_SEARCHED)])
            })
            .flatten();
        let from = found.map_or(0, |hit| hit.start().saturating_sub(BEFORE_HIT));
        let from = boundary(line, from.min(line.len() - MAX_SHOWN));
        let to = boundary(line, from + MAX_SHOWN);
        let before = if from > 0 { "…" } else { "" };
        let after = if to < line.len() { "…" } else { "" };
        (format!("{before}{}{after}", &line[from..to]), false)
    }
}

/// The hits with their context, as ranges that do not overlap.
fn blocks(hits: &[usize], context: usize, lines: usize) -> Vec<RangeInclusive<usize>> {
    let mut blocks: Vec<RangeInclusive<usize>> = Vec::new();
    for hit in hits {
        let from = hit.saturating_sub(context);
        let to = (hit + context).min(lines.saturating_sub(1));
        match blocks.last_mut() {
            Some(last) if *last.end() + 1 >= from => *last = *last.start()..=to,
            _ => blocks.push(from..=to),
        }
    }
    blocks
}
