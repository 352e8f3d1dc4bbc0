//! A digest of several parts, none of which can run into the next.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

#[derive(Default)]
pub(super) struct PartDigest(Sha256);

impl PartDigest {
    pub(super) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// 64 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        let mut hex = String::with_capacity(64);
        for byte in self.0.finalize() {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&str]) -> String {
        let mut digest = PartDigest::default();
        for part in parts {
            digest.add(part);
        }
        digest.hex()
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_eq!(of(&[]).len(), 64);
    }
}
