//! Private keys in armour.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

/// How far an armoured key may reach, in bytes (an RSA key of 16,384 bits has 12.7 kB).
const MAX_BLOCK: usize = 20_000;
/// The fewest bytes of a key (an Ed25519 key in PKCS#8 has 48).
const MIN_KEY: usize = 46;

/// An armoured block that calls itself a private key.
pub(in crate::detect) struct KeyBlock {
    /// From `-----BEGIN` to the end of the `-----END …-----` line, or of what there is of it.
    pub(in crate::detect) range: Range<usize>,
    /// True when the content decodes to an unencrypted key.
    pub(super) usable: bool,
}

/// Reads the private-key block that begins at `start` (at `-----BEGIN `).
pub(in crate::detect) fn private_key_block(bytes: &[u8], start: usize) -> Option<KeyBlock> {
    let window = &bytes[start..bytes.len().min(start + MAX_BLOCK)];
    let label_start = b"-----BEGIN ".len();
    let label_len = dashes(window.get(label_start..)?)?;
    let label = &window[label_start..label_start + label_len];
    if !(label.ends_with(b"PRIVATE KEY") || label == b"PGP PRIVATE KEY BLOCK") {
        return None;
    }
    let body_start = label_start + label_len + 5;
    let body = &window[body_start..];
    // The next dashes end the block or begin another one; looking no further keeps many blocks linear.
    let next = memmem::find(body, b"-----");
    let closing = next.filter(|at| body[*at..].starts_with(b"-----END "));
    let (body_end, block_end, closed) = if let Some(at) = closing {
        let rest = dashes(&body[at + 9..]).map_or(0, |len| len + 5);
        (at, at + 9 + rest, true)
    } else {
        let end = armour_len(&body[..next.unwrap_or(body.len())]);
        (end, end, false)
    };
    let content = armour_content(&body[..body_end]);
    let usable = content.is_some_and(|text| is_key(label, &text, closed));
    Some(KeyBlock {
        range: start..start + body_start + block_end,
        usable,
    })
}

/// Where the dashes after a label of at most 60 bytes begin.
fn dashes(text: &[u8]) -> Option<usize> {
    memmem::find(&text[..text.len().min(65)], b"-----")
}

/// The lines of an armour, which may be written with escaped newlines in a string.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|b| matches!(b, b'\n' | b'\r' | b'\\'))
}

/// How long a block without an end goes on: to its last line that is base64.
fn armour_len(body: &[u8]) -> usize {
    let mut at = 0;
    let mut end = 0;
    for line in lines(body) {
        let run = longest_base64(line);
        if line.len() > 1 && run.len() < 16 && !line.contains(&b':') {
            break;
        }
        at += line.len() + 1;
        if run.len() >= 16 {
            end = at - 1;
        }
    }
    end.min(body.len())
}

/// The base64 of the block; `None` when it says that it is encrypted.
fn armour_content(body: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for (index, line) in lines(body).enumerate() {
        if line.contains(&b':') {
            if memmem::find(line, b"ENCRYPTED").is_some() {
                return None;
            }
            continue;
        }
        // An escaped newline leaves its letter at the front of what follows the backslash.
        let line = match line {
            [b'n' | b'r', rest @ ..] if index > 0 && is_escaped(body, line) => rest,
            line => line,
        };
        let run = longest_base64(line);
        // A lone `+` beside quotes is an operator, not content.
        if run.len() < 4 && run != line.trim_ascii() {
            continue;
        }
        // PGP's checksum line (`=AbCd`) is not part of the content.
        if run.first() != Some(&b'=') {
            text.extend_from_slice(run);
        }
    }
    Some(text)
}

/// True when `line`, a subslice of `body`, follows a backslash.
fn is_escaped(body: &[u8], line: &[u8]) -> bool {
    let at = line.as_ptr() as usize - body.as_ptr() as usize;
    at > 0 && body[at - 1] == b'\\'
}

/// The longest stretch of base64 in a line, so that quotes, commas and `+` operators around it do not matter.
fn longest_base64(line: &[u8]) -> &[u8] {
    line.split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')))
        .max_by_key(|run| run.len())
        .unwrap_or_default()
}

/// True when the text decodes to what the label promises: a DER sequence of the right length, an
/// SSH key without a cipher, a PGP packet.
fn is_key(label: &[u8], text: &[u8], closed: bool) -> bool {
    let whole = if closed {
        text
    } else {
        &text[..text.len() / 4 * 4]
    };
    let trimmed = whole
        .iter()
        .rposition(|b| *b != b'=')
        .map_or(0, |at| at + 1);
    let mut padded = whole[..trimmed].to_vec();
    padded.resize(trimmed.div_ceil(4) * 4, b'=');
    let Ok(raw) = STANDARD.decode(&padded) else {
        return false;
    };
    if raw.len() < MIN_KEY {
        return false;
    }
    match label {
        b"OPENSSH PRIVATE KEY" => raw.starts_with(b"openssh-key-v1\0\0\0\0\x04none"),
        b"PGP PRIVATE KEY BLOCK" => raw[0] & 0x80 != 0 && raw.len() > 150,
        b"ENCRYPTED PRIVATE KEY" => false,
        _ => {
            let Some(len) = der_sequence_len(&raw) else {
                return false;
            };
            let complete = if closed {
                len == raw.len()
            } else {
                len >= raw.len() && raw.len() >= 64
            };
            // All-equal content is a stub that happens to decode.
            complete && raw[4..].iter().any(|b| *b != raw[4])
        }
    }
}

/// The total length of the DER sequence that `raw` begins with.
fn der_sequence_len(raw: &[u8]) -> Option<usize> {
    match *raw {
        [0x30, len @ 0..=0x7f, ..] => Some(2 + usize::from(len)),
        [0x30, 0x81, len, ..] => Some(3 + usize::from(len)),
        [0x30, 0x82, high, low, ..] => Some(4 + usize::from(high) * 256 + usize::from(low)),
        _ => None,
    }
}
