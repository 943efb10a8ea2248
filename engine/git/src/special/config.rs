//! git's configuration format, as strict as git itself reads it.
//!
//! Format: `git help config`, "Configuration file". Odd ends are git's own: text ends at a NUL, a carriage
//! return before a line feed is none, a value's inner spaces stay and its outer ones do not.

/// The bytes, and where in them the reader is; a line feed stands at the end of all.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    line: usize,
    ended: bool,
}

/// The file cannot be read on.
struct Bad;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

impl Reader<'_> {
    fn next(&mut self) -> u8 {
        let Some(mut byte) = self.data.get(self.at).copied() else {
            self.ended = true;
            return b'\n';
        };
        self.at += 1;
        if byte == b'\r' && self.data.get(self.at) == Some(&b'\n') {
            self.at += 1;
            byte = b'\n';
        }
        if byte == b'\n' {
            self.line += 1;
        }
        byte
    }

    /// `name]` or `name "more"]`, after the bracket.
    fn section(&mut self) -> Result<Vec<u8>, Bad> {
        let mut name = Vec::new();
        loop {
            let byte = self.next();
            match byte {
                _ if self.ended => return Err(Bad),
                b']' => return Ok(name),
                byte if is_space(byte) => return self.subsection(name, byte),
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Bad),
            }
        }
    }

    fn subsection(&mut self, mut name: Vec<u8>, mut byte: u8) -> Result<Vec<u8>, Bad> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(Bad);
            }
            byte = self.next();
        }
        if byte != b'"' {
            return Err(Bad);
        }
        name.push(b'.');
        loop {
            byte = self.next();
            match byte {
                b'\n' => return Err(Bad),
                b'"' => break,
                b'\\' => {
                    byte = self.next();
                    if byte == b'\n' {
                        return Err(Bad);
                    }
                    name.push(byte);
                }
                byte => name.push(byte),
            }
        }
        if self.next() == b']' { Ok(name) } else { Err(Bad) }
    }

    /// The rest of a variable's name, and its value; `None` without `=`.
    fn variable(&mut self, name: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Bad> {
        let mut byte = loop {
            let byte = self.next();
            if self.ended || !is_key(byte) {
                break byte;
            }
            name.push(byte.to_ascii_lowercase());
        };
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok(None),
            b'=' => self.value().map(Some),
            _ => Err(Bad),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Bad> {
        let (mut value, mut quoted, mut comment) = (Vec::new(), false, false);
        // Where the spaces start that may be the last.
        let mut trim = None;
        loop {
            let byte = self.next();
            match byte {
                b'\n' if quoted => return Err(Bad),
                b'\n' => {
                    value.truncate(trim.unwrap_or(value.len()));
                    return Ok(value);
                }
                _ if comment => {}
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        trim.get_or_insert(value.len());
                        value.push(byte);
                    }
                }
                b';' | b'#' if !quoted => comment = true,
                b'\\' => {
                    trim = None;
                    value.extend(self.escaped()?);
                }
                b'"' => {
                    trim = None;
                    quoted = !quoted;
                }
                byte => {
                    trim = None;
                    value.push(byte);
                }
            }
        }
    }

    fn escaped(&mut self) -> Result<Option<u8>, Bad> {
        Ok(Some(match self.next() {
            b'\n' => return Ok(None),
            b't' => b'\t',
            b'b' => 8,
            b'n' => b'\n',
            byte @ (b'\\' | b'"') => byte,
            _ => return Err(Bad),
        }))
    }
}

/// Text up to its first NUL.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Tells each variable with its line and value, in order.
///
/// # Errors
/// The line from which on it cannot be read; what stands before it was told.
pub(super) fn read(data: &[u8], mut tell: impl FnMut(usize, &[u8], Option<&[u8]>)) -> Result<(), usize> {
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let mut reader = Reader { data, at: 0, line: 1, ended: false };
    let (mut section, mut comment) = (Vec::new(), false);
    loop {
        let line = reader.line;
        match reader.next() {
            b'\n' if reader.ended => return Ok(()),
            b'\n' => comment = false,
            _ if comment => {}
            byte if is_space(byte) => {}
            b'#' | b';' => comment = true,
            b'[' => {
                section = reader.section().map_err(|Bad| line)?;
                section.push(b'.');
            }
            byte if byte.is_ascii_alphabetic() => {
                let mut name = section.clone();
                name.push(byte.to_ascii_lowercase());
                let value = reader.variable(&mut name).map_err(|Bad| line)?;
                tell(line, text(&name), value.as_deref().map(text));
            }
            _ => return Err(line),
        }
    }
}

/// The name and the key of a submodule's variable.
pub(super) fn submodule(variable: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = variable.strip_prefix(b"submodule.")?;
    let dot = rest.iter().rposition(|byte| *byte == b'.')?;
    Some((rest.get(..dot)?, rest.get(dot + 1..)?))
}
