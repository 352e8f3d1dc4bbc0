//! Text that git shows as binary: an attribute, a NUL byte or a wide encoding must not hide it.

use std::borrow::Cow;

/// Bytes looked at to tell text from binary. What stands first is what an interpreter runs.
const PROBED: usize = 64 * 1024;
/// So few NULs never make a binary, however short the file is.
const STRAY_NULS: usize = 8;

/// How the bytes of a file spell its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// One byte or more a character, NULs in between ignored, as shells do.
    Bytes,
    /// UTF-16 after `skip` bytes.
    Utf16 { big_endian: bool, skip: usize },
    /// UTF-32 after its mark of four bytes.
    Utf32 { big_endian: bool },
}

/// What a person or an interpreter would read in `content` although git shows no text for it, in UTF-8 (other bytes as
/// they are) and without NULs; `None` for what is binary indeed. Line breaks are kept, so that line numbers hold.
pub fn hidden_text(content: &[u8]) -> Option<Cow<'_, [u8]>> {
    let spelling = spelling(content);
    // A wide character may be cut at the probe's end; one odd character more decides nothing.
    let probe = decoded(&content[..content.len().min(PROBED)], spelling);
    readable(&probe).then(|| decoded(content, spelling))
}

/// True when [`hidden_text`] finds text and NULs are the exception, or come from a wide encoding.
///
/// Stricter, because a format that pads text with NULs (a tar of sources) is no file for a model to read.
pub(super) fn reads_as_text(content: &[u8]) -> bool {
    let probe = &content[..content.len().min(PROBED)];
    let few = || {
        let nuls = memchr::memchr_iter(0, probe).count();
        nuls <= STRAY_NULS || nuls * 50 <= probe.len()
    };
    (spelling(content) != Spelling::Bytes || few()) && hidden_text(probe).is_some()
}

fn spelling(content: &[u8]) -> Spelling {
    let wide = |big_endian, skip| Spelling::Utf16 { big_endian, skip };
    match content {
        [0xff, 0xfe, 0, 0, ..] => return Spelling::Utf32 { big_endian: false },
        [0, 0, 0xfe, 0xff, ..] => return Spelling::Utf32 { big_endian: true },
        [0xff, 0xfe, ..] => return wide(false, 2),
        [0xfe, 0xff, ..] => return wide(true, 2),
        _ => {}
    }
    // Without a mark: of mostly ASCII text in UTF-16 one half of the bytes is NUL.
    let probe = &content[..content.len().min(PROBED)];
    let nuls = |from: usize| probe.iter().skip(from).step_by(2).filter(|b| **b == 0);
    let (even, odd, pairs) = (nuls(0).count(), nuls(1).count(), probe.len() / 2);
    if odd * 2 > pairs && even * 50 <= pairs {
        wide(false, 0)
    } else if even * 2 > pairs && odd * 50 <= pairs {
        wide(true, 0)
    } else {
        Spelling::Bytes
    }
}

fn decoded(content: &[u8], spelling: Spelling) -> Cow<'_, [u8]> {
    match spelling {
        Spelling::Bytes if memchr::memchr(0, content).is_none() => Cow::Borrowed(content),
        Spelling::Bytes => Cow::Owned(content.iter().copied().filter(|b| *b != 0).collect()),
        Spelling::Utf16 { big_endian, skip } => {
            let units = content[skip..].chunks_exact(2).map(|pair| {
                let pair = [pair[0], pair[1]];
                if big_endian {
                    u16::from_be_bytes(pair)
                } else {
                    u16::from_le_bytes(pair)
                }
            });
            let text: String = char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .filter(|c| *c != '\0')
                .collect();
            Cow::Owned(text.into_bytes())
        }
        Spelling::Utf32 { big_endian } => {
            let units = content[4..].chunks_exact(4).map(|four| {
                let four = [four[0], four[1], four[2], four[3]];
                if big_endian {
                    u32::from_be_bytes(four)
                } else {
                    u32::from_le_bytes(four)
                }
            });
            let text: String = units
                .map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
                .filter(|c| *c != '\0')
                .collect();
            Cow::Owned(text.into_bytes())
        }
    }
}

/// True when hardly a character is a control character besides white space, or none at all.
fn readable(text: &[u8]) -> bool {
    let control = |b: &&u8| matches!(**b, 1..=8 | 11 | 14..=31 | 127);
    let control = text.iter().filter(control).count();
    let broken = String::from_utf8_lossy(text)
        .chars()
        .filter(|c| *c == char::REPLACEMENT_CHARACTER)
        .count();
    !text.is_empty() && (control + broken) * 100 <= text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide<const N: usize>(mark: &[u8], text: &str, unit: fn(char) -> [u8; N]) -> Vec<u8> {
        let mut bytes = mark.to_vec();
        bytes.extend(text.chars().flat_map(unit));
        bytes
    }

    #[test]
    fn every_spelling_reads_as_the_same_text() {
        let text = "eval(x)\nsecond = 'é'\n";
        let le = |c: char| u16::try_from(u32::from(c)).unwrap().to_le_bytes();
        let be = |c: char| u16::try_from(u32::from(c)).unwrap().to_be_bytes();
        for content in [
            text.as_bytes().to_vec(),
            wide(b"\xff\xfe", text, le),
            wide(b"\xfe\xff", text, be),
            wide(b"", text, le),
            wide(b"", text, be),
            wide(b"\xff\xfe\0\0", text, |c| u32::from(c).to_le_bytes()),
            wide(b"\0\0\xfe\xff", text, |c| u32::from(c).to_be_bytes()),
            text.replace("al(", "a\0l(").into_bytes(),
        ] {
            let read = hidden_text(&content).expect("text");
            assert_eq!(String::from_utf8_lossy(&read), text, "{content:?}");
            assert!(reads_as_text(&content), "{content:?}");
        }
    }

    #[test]
    fn padding_hides_nothing_from_checks() {
        let script = [&b"curl -k x\n"[..], &[0; 4000]].concat();
        assert_eq!(hidden_text(&script).as_deref(), Some(&b"curl -k x\n"[..]));
        assert!(!reads_as_text(&script));
    }

    #[test]
    fn latin_1_in_long_text_is_no_binary() {
        let text = [&b"x = 1\n".repeat(40)[..], b"caf\xe9\0\n"].concat();
        assert!(hidden_text(&text).is_some());
    }

    #[test]
    fn binaries_are_binary() {
        let noise: Vec<u8> = (0..4000_u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";
        for binary in [
            &noise[..],
            b"",
            image,
            &[0; 64],
            b"\xff\xfe",
            b"\xff\xfe\0\0\x01",
        ] {
            assert_eq!(hidden_text(binary), None, "{binary:?}");
            assert!(!reads_as_text(binary), "{binary:?}");
        }
    }
}
