//! Packing files into chunks that one reviewer reads in one pass.
//!
//! @ref LLP 0002#chunks — locality where it costs no chunk

use std::collections::HashMap;

use super::types::{Diff, FileDiff};

/// How large a chunk may get. A file over the line limit gets a chunk of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Added plus deleted lines.
    pub max_changed_lines: u32,
    /// Number of files (0 counts as 1).
    pub max_files: u32,
}

/// With a higher limit of files than this, chunks are so coarse that they are just filled in order.
const FINE: u32 = 256;

/// Packs the files with the indices `kept` (ascending) into the fewest chunks that a walk in diff order
/// needs. Within that number, tests stand with what they test and folders are cut as seldom as possible.
/// No file is split; every index is in exactly one chunk, ascending; indices out of range are left out.
pub fn pack(diff: &Diff, kept: &[usize], limits: ChunkLimits) -> Vec<Vec<usize>> {
    let kept: Vec<usize> = kept
        .iter()
        .copied()
        .filter(|index| *index < diff.files.len())
        .collect();
    let in_order = split(diff, &kept, limits);
    let paired = split(diff, &with_pairs(diff, &kept), limits);
    let mut chunks = if paired.len() <= in_order.len() {
        paired
    } else {
        in_order
    };
    for chunk in &mut chunks {
        chunk.sort_unstable();
    }
    chunks.sort_unstable();
    chunks
}

/// Cost of a list of chunks: their number first, then how much its cuts tear apart.
type Cost = (usize, u64);

/// Cuts a sequence into the fewest chunks, among those at the cheapest places, among those as early full as possible.
fn split(diff: &Diff, order: &[usize], limits: ChunkLimits) -> Vec<Vec<usize>> {
    if limits.max_files > FINE {
        return greedy(diff, order, limits);
    }
    let max_files = limits.max_files.max(1) as usize;
    let count = order.len();
    let mut best: Vec<(Cost, usize)> = vec![((0, 0), 0); count + 1];
    for start in (0..count).rev() {
        let mut lines = 0u64;
        let mut found: Option<(Cost, usize)> = None;
        for end in start + 1..=count.min(start + max_files) {
            lines += changed(diff, order[end - 1]);
            if end > start + 1 && lines > u64::from(limits.max_changed_lines) {
                break;
            }
            let ((chunks, torn), _) = best[end];
            let cut = if end < count {
                cut_cost(&diff.files[order[end - 1]], &diff.files[order[end]])
            } else {
                0
            };
            let cost = (chunks + 1, torn + cut);
            if found.is_none_or(|(known, _)| cost <= known) {
                found = Some((cost, end));
            }
        }
        if let Some(found) = found {
            best[start] = found;
        }
    }
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < count {
        let end = best[start].1.max(start + 1);
        chunks.push(order[start..end].to_vec());
        start = end;
    }
    chunks
}

fn greedy(diff: &Diff, order: &[usize], limits: ChunkLimits) -> Vec<Vec<usize>> {
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut lines = 0u64;
    for &index in order {
        let more = changed(diff, index);
        match chunks.last_mut() {
            Some(chunk)
                if lines + more <= u64::from(limits.max_changed_lines)
                    && chunk.len() < limits.max_files as usize =>
            {
                chunk.push(index);
                lines += more;
            }
            _ => {
                chunks.push(vec![index]);
                lines = more;
            }
        }
    }
    chunks
}

fn changed(diff: &Diff, index: usize) -> u64 {
    diff.files[index].changed_lines()
}

/// How much is lost when two neighbours land in different chunks.
fn cut_cost(a: &FileDiff, b: &FileDiff) -> u64 {
    let (a_key, b_key) = (pair_key(a), pair_key(b));
    if a_key.stem == b_key.stem && a_key.extension == b_key.extension && a_key.test != b_key.test {
        4
    } else if a.path.parent() == b.path.parent() {
        2
    } else {
        let top = |file: &FileDiff| {
            let parent = file.path.parent();
            parent.split(|b| *b == b'/').next().map(<[u8]>::to_vec)
        };
        u64::from(top(a) == top(b))
    }
}

/// A file's name without what marks it as a test.
#[derive(PartialEq, Eq, Hash)]
struct PairKey<'a> {
    stem: &'a [u8],
    extension: &'a [u8],
    test: bool,
}

fn pair_key(file: &FileDiff) -> PairKey<'_> {
    const ENDS: [&[u8]; 9] = [
        b".test",
        b".spec",
        b"_test",
        b"_spec",
        b"-test",
        b"-spec",
        b".stories",
        b"Tests",
        b"Test",
    ];
    let extension = file.path.extension().unwrap_or_default();
    let name = file.path.file_name();
    let stem = if extension.is_empty() {
        name
    } else {
        &name[..name.len() - extension.len() - 1]
    };
    let bare = ENDS
        .iter()
        .find_map(|end| stem.strip_suffix(*end))
        .or_else(|| stem.strip_prefix(b"test_"))
        .filter(|bare| !bare.is_empty());
    PairKey {
        stem: bare.unwrap_or(stem),
        extension,
        test: bare.is_some(),
    }
}

/// The sequence with every test moved behind the source it tests: the one with the same name that
/// shares most of the folder. Tests without a source stay where they are.
fn with_pairs(diff: &Diff, kept: &[usize]) -> Vec<usize> {
    let mut sources: HashMap<(&[u8], &[u8]), Vec<usize>> = HashMap::new();
    for &index in kept {
        let key = pair_key(&diff.files[index]);
        if !key.test {
            sources
                .entry((key.stem, key.extension))
                .or_default()
                .push(index);
        }
    }
    let mut followers: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut moved = vec![false; diff.files.len()];
    for &index in kept {
        let file = &diff.files[index];
        let key = pair_key(file);
        let Some(sources) = sources.get(&(key.stem, key.extension)).filter(|_| key.test) else {
            continue;
        };
        // Names that many files share (`index`, `mod`) say nothing; they would also cost quadratic time.
        if sources.len() > 16 {
            continue;
        }
        let nearest = sources.iter().max_by_key(|source| {
            let shared = shared_prefix(file.path.parent(), diff.files[**source].path.parent());
            (shared, usize::MAX - **source)
        });
        if let Some(source) = nearest {
            followers.entry(*source).or_default().push(index);
            moved[index] = true;
        }
    }
    let mut order = Vec::with_capacity(kept.len());
    for &index in kept {
        if !moved[index] {
            order.push(index);
            order.extend(followers.remove(&index).unwrap_or_default());
        }
    }
    order
}

fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::FileMode;
    use crate::model::{ChangeStatus, RepoPath};

    fn diff(files: &[(&str, u32)]) -> Diff {
        Diff {
            patch: bytes::Bytes::new(),
            files: files
                .iter()
                .map(|(path, added)| FileDiff {
                    path: RepoPath::new(path).unwrap(),
                    old_path: None,
                    status: ChangeStatus::Modified,
                    score: None,
                    old_mode: FileMode(0o100_644),
                    new_mode: FileMode(0o100_644),
                    old_id: None,
                    new_id: None,
                    added: *added,
                    deleted: 0,
                    binary: false,
                    section: 0..0,
                    hunks: Vec::new(),
                })
                .collect(),
        }
    }

    fn packed(files: &[(&str, u32)], max_changed_lines: u32, max_files: u32) -> Vec<Vec<usize>> {
        let kept: Vec<_> = (0..files.len()).collect();
        let limits = ChunkLimits {
            max_changed_lines,
            max_files,
        };
        pack(&diff(files), &kept, limits)
    }

    #[test]
    fn known_answers() {
        let lines = |lines: &[u32]| {
            let files: Vec<_> = lines.iter().map(|n| ("x/f", *n)).collect();
            packed(&files, 1000, 20)
        };
        assert_eq!(lines(&[400, 400, 400]), [vec![0, 1], vec![2]]);
        assert_eq!(lines(&[10, 5000, 10]), [[0], [1], [2]]);
        assert_eq!(lines(&[5000, 10]), [[0], [1]]);
        let sizes: Vec<_> = packed(&[("f", 1); 25], 10_000, 20)
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(sizes, [20, 5]);
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn folders_stay_together_when_it_costs_nothing() {
        let files = [
            ("a/1", 300),
            ("a/2", 300),
            ("b/1", 300),
            ("b/2", 300),
            ("b/3", 100),
        ];
        assert_eq!(packed(&files, 1000, 20), [vec![0, 1], vec![2, 3, 4]]);
        // It would cost a third chunk here.
        let files = [("a/1", 600), ("b/1", 400), ("b/2", 600), ("b/3", 400)];
        assert_eq!(packed(&files, 1000, 20), [[0, 1], [2, 3]]);
    }

    #[test]
    fn tests_stand_with_their_source() {
        let files = [
            ("src/a.ts", 400),
            ("src/b.ts", 400),
            ("tests/a.test.ts", 400),
            ("tests/b.test.ts", 400),
        ];
        assert_eq!(packed(&files, 800, 20), [[0, 2], [1, 3]]);
        // In diff order two chunks are enough, pairs would need three: order wins.
        let files = [
            ("src/a.ts", 600),
            ("src/b.ts", 400),
            ("x/a.test.ts", 600),
            ("x/b.test.ts", 400),
        ];
        assert_eq!(packed(&files, 1000, 20).len(), 2);
    }

    #[test]
    fn every_kept_file_once() {
        let files: Vec<(String, u32)> = (0..2000)
            .map(|n| (format!("d{}/f{n}", n / 7), n % 90))
            .collect();
        let files: Vec<_> = files.iter().map(|(p, n)| (p.as_str(), *n)).collect();
        for (lines, count) in [(1000, 20), (0, 0), (u32::MAX, u32::MAX), (50, 3)] {
            let chunks = packed(&files, lines, count);
            let mut all: Vec<_> = chunks.iter().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..2000).collect::<Vec<_>>());
            assert!(chunks.iter().all(|c| c.len() <= count.max(1) as usize));
        }
        let limits = ChunkLimits {
            max_changed_lines: 10,
            max_files: 2,
        };
        assert_eq!(pack(&diff(&[("a", 1)]), &[0, 7], limits), [[0]]);
    }
}
