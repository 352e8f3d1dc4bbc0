//! Checksums that providers put into their tokens.

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The CRC-32 of zlib and PNG.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// A number as six base-62 digits, most significant first (2³² needs no more than six).
pub(super) fn base62_6(mut value: u32) -> [u8; 6] {
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(value % 62) as usize];
        value /= 62;
    }
    digits
}

/// GitHub's and npm's scheme: the last six characters are the CRC-32 of those before them.
pub(super) fn ends_with_crc(body: &[u8]) -> bool {
    body.split_last_chunk::<6>()
        .is_some_and(|(random, sum)| !random.is_empty() && base62_6(crc32(random)) == *sum)
}

/// Verifies a Bech32 string (BIP 173) given as its prefix and the characters after the `1`; any one case.
pub(super) fn bech32_ok(prefix: &[u8], data: &[u8]) -> bool {
    let low = prefix.iter().map(u8::to_ascii_lowercase);
    let mut values: Vec<u8> = low.clone().map(|b| b >> 5).collect();
    values.push(0);
    values.extend(low.map(|b| b & 31));
    for byte in data {
        let byte = byte.to_ascii_lowercase();
        match BECH32.iter().position(|c| *c == byte) {
            Some(value) => values.push(value as u8),
            None => return false,
        }
    }
    let mut sum = 1_u32;
    for value in values {
        let top = sum >> 25;
        sum = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        let terms = [
            0x3b6a_57b2,
            0x2650_8e6d,
            0x1ea1_19fa,
            0x3d42_33dd,
            0x2a14_62b3,
        ];
        for (bit, term) in terms.into_iter().enumerate() {
            if (top >> bit) & 1 == 1 {
                sum ^= term;
            }
        }
    }
    sum == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_check_string() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_published_token_body_checks_out() {
        // The worked example of articles on the format; revoked long ago, and split all the same.
        let body = ["zQWBuTSOoRi4A9sp", "HcVY5ncnsDkxkJ", "0mLq17"].concat();
        assert!(ends_with_crc(body.as_bytes()));
        assert!(!ends_with_crc(body.replace('z', "y").as_bytes()));
        assert!(!ends_with_crc(b"short"));
    }

    #[test]
    fn bech32_of_the_standard() {
        assert!(bech32_ok(b"A", b"2UEL5L"));
        assert!(bech32_ok(
            b"abcdef",
            b"qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"
        ));
        assert!(!bech32_ok(b"A", b"2UEL5M"));
        assert!(!bech32_ok(b"A", b"2UEL5b"));
    }
}
