//! A JSON reader that forgives what models get wrong, and says when it had to.

use serde_json::{Map, Number, Value};

/// Deepest nesting that is read.
const MAX_DEPTH: u32 = 48;

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Here is no JSON, or none that can be mended.
    Broken,
    /// All fuel is used up.
    Fuel,
}

/// How the end of a string is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The first unescaped quote ends it.
    Plain,
    /// A quote ends it only where JSON could go on behind it: models forget to escape.
    Guess,
}

/// One attempt to read a value out of a longer text.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    /// Where it stands.
    pub(super) at: usize,
    /// The text ended inside the value, which was closed.
    pub(super) cut: bool,
    quotes: Quotes,
    fuel: &'a mut usize,
}

impl<'a> Reader<'a> {
    /// Reads from `at`. Each byte looked at takes one unit of `fuel`, which bounds all attempts together.
    pub(super) fn new(text: &'a str, at: usize, quotes: Quotes, fuel: &'a mut usize) -> Self {
        Self {
            text: text.as_bytes(),
            at,
            cut: false,
            quotes,
            fuel,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn burn(&mut self, units: usize) -> Result<(), Stop> {
        match self.fuel.checked_sub(units) {
            Some(rest) => {
                *self.fuel = rest;
                Ok(())
            }
            None => Err(Stop::Fuel),
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        self.at += 1;
        self.burn(1)
    }

    fn skip_space(&mut self) -> Result<(), Stop> {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.step()?;
        }
        Ok(())
    }

    /// Reads one value.
    pub(super) fn value(&mut self, depth: u32) -> Result<Value, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Broken);
        }
        self.burn(1)?;
        self.skip_space()?;
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => {
                self.cut = true;
                Ok(Value::Null)
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, Stop> {
        self.step()?;
        let mut map = Map::new();
        loop {
            self.skip_space()?;
            match self.peek() {
                Some(b'}') => {
                    self.step()?;
                    return Ok(Value::Object(map));
                }
                Some(b',') => {
                    self.step()?;
                    continue;
                }
                Some(b'"') => {}
                Some(_) => return Err(Stop::Broken),
                None => {
                    self.cut = true;
                    return Ok(Value::Object(map));
                }
            }
            let key = self.string()?;
            self.skip_space()?;
            match self.peek() {
                Some(b':') => self.step()?,
                Some(_) => return Err(Stop::Broken),
                None => {
                    // A key without a value says nothing.
                    self.cut = true;
                    return Ok(Value::Object(map));
                }
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.skip_space()?;
            if !matches!(self.peek(), Some(b',' | b'}') | None) {
                return Err(Stop::Broken);
            }
        }
    }

    fn array(&mut self, depth: u32) -> Result<Value, Stop> {
        self.step()?;
        let mut items = Vec::new();
        loop {
            self.skip_space()?;
            match self.peek() {
                Some(b']') => {
                    self.step()?;
                    return Ok(Value::Array(items));
                }
                Some(b',') => {
                    self.step()?;
                    continue;
                }
                Some(_) => {}
                None => {
                    self.cut = true;
                    return Ok(Value::Array(items));
                }
            }
            items.push(self.value(depth + 1)?);
            self.skip_space()?;
            if !matches!(self.peek(), Some(b',' | b']') | None) {
                return Err(Stop::Broken);
            }
        }
    }

    /// Reads a string; line ends and other control characters in it are taken as they are.
    pub(super) fn string(&mut self) -> Result<String, Stop> {
        self.step()?;
        let mut out = Vec::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let run = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..run]);
            self.burn(run + 1)?;
            self.at += run;
            match self.peek() {
                None => {
                    self.cut = true;
                    break;
                }
                Some(b'"') => {
                    self.at += 1;
                    if self.quotes == Quotes::Plain || self.may_end()? {
                        break;
                    }
                    out.push(b'"');
                }
                Some(_) => self.escape(&mut out)?,
            }
        }
        // Runs are cut at ASCII bytes only, so this loses nothing of valid text.
        Ok(String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Whether JSON could go on after a quote that was just read.
    fn may_end(&mut self) -> Result<bool, Stop> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let space = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.burn(space + 1)?;
        Ok(matches!(
            rest.get(space),
            None | Some(b',' | b'}' | b']' | b':')
        ))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Stop> {
        let Some(&letter) = self.text.get(self.at + 1) else {
            self.at += 1;
            return Ok(());
        };
        self.at += 2;
        self.burn(2)?;
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'"' | b'\\' | b'/' => out.push(letter),
            b'u' => {
                let read = self.code_point().unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(read.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => {
                // No escape of JSON (`\d`): meant as it stands. The letter may begin a character.
                out.push(b'\\');
                self.at -= 1;
            }
        }
        Ok(())
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    fn code_point(&mut self) -> Option<char> {
        let first = self.unit()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if self.text.get(self.at..self.at + 2) != Some(b"\\u") {
            return None;
        }
        self.at += 2;
        let second = self.unit()?;
        if !(0xDC00..0xE000).contains(&second) {
            return None;
        }
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    fn token(&mut self, belongs: fn(u8) -> bool) -> Result<&'a str, Stop> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|b| belongs(**b)).count();
        self.burn(length)?;
        self.at += length;
        std::str::from_utf8(&rest[..length]).map_err(|_| Stop::Broken)
    }

    fn number(&mut self) -> Result<Value, Stop> {
        let text = self.token(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))?;
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        if let Some(number) = text.parse().ok().and_then(Number::from_f64) {
            return Ok(Value::Number(number));
        }
        if self.peek().is_none() {
            self.cut = true;
            return Ok(Value::Null);
        }
        Err(Stop::Broken)
    }

    /// `true`, `null` and how other languages write them.
    fn word(&mut self) -> Result<Value, Stop> {
        let text = self.token(|b| b.is_ascii_alphabetic())?;
        match text {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            "null" | "None" | "undefined" => Ok(Value::Null),
            "" => Err(Stop::Broken),
            _ if self.peek().is_none() => {
                self.cut = true;
                Ok(Value::Null)
            }
            _ => Err(Stop::Broken),
        }
    }
}
