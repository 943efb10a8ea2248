//! The header of a pack entry: type, inflated size, and a delta's base.

use yard_common::ObjectId;

use crate::object::Kind;

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// An object.
    Full(Kind),
    /// A delta against the entry that starts this many bytes before.
    Ofs(u64),
    /// A delta against the object of this id.
    Ref(ObjectId),
}

/// A read header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub content: Content,
    /// Inflated bytes of the object or the delta.
    pub size: u64,
    /// Bytes of the header itself.
    pub len: usize,
}

/// Longest header: 10 bytes of size and an id.
pub(super) const HEADER_BYTES_MAX: usize = 30;

/// Reads a header at the start of `bytes`; `Ok(None)` when they end within it.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
    let mut at = 0;
    let mut next = || {
        let byte = bytes.get(at).copied();
        at += 1;
        byte
    };
    let Some(first) = next() else { return Ok(None) };
    let mut size = u64::from(first & 15);
    let mut shift = 4;
    let mut byte = first;
    while byte & 0x80 != 0 {
        let Some(more) = next() else { return Ok(None) };
        byte = more;
        if shift > 57 {
            return Err("an entry's size does not fit in 64 bits");
        }
        size |= u64::from(byte & 0x7f) << shift;
        shift += 7;
    }
    let content = match (first >> 4) & 7 {
        1 => Content::Full(Kind::Commit),
        2 => Content::Full(Kind::Tree),
        3 => Content::Full(Kind::Blob),
        4 => Content::Full(Kind::Tag),
        6 => {
            let Some(mut byte) = next() else { return Ok(None) };
            let mut back = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                let Some(more) = next() else { return Ok(None) };
                byte = more;
                if back >= 1 << 56 {
                    return Err("a delta's base offset does not fit in 64 bits");
                }
                back = ((back + 1) << 7) | u64::from(byte & 0x7f);
            }
            Content::Ofs(back)
        }
        7 => match bytes.get(at..at + 20).and_then(ObjectId::from_bytes) {
            Some(id) => {
                at += 20;
                Content::Ref(id)
            }
            None => return Ok(None),
        },
        _ => return Err("an entry has an unknown type"),
    };
    Ok(Some(Header { content, size, len: at }))
}

/// Appends a header.
pub(super) fn write(out: &mut Vec<u8>, content: Content, size: u64) {
    let number = match content {
        Content::Full(Kind::Commit) => 1u8,
        Content::Full(Kind::Tree) => 2,
        Content::Full(Kind::Blob) => 3,
        Content::Full(Kind::Tag) => 4,
        Content::Ofs(_) => 6,
        Content::Ref(_) => 7,
    };
    let low = |value: u64, mask: u64| u8::try_from(value & mask).unwrap_or(0);
    let mut byte = (number << 4) | low(size, 15);
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = low(rest, 0x7f);
        rest >>= 7;
    }
    out.push(byte);
    match content {
        Content::Full(_) => {}
        Content::Ofs(back) => {
            let mut bytes = vec![low(back, 0x7f)];
            let mut rest = back >> 7;
            while rest > 0 {
                rest -= 1;
                bytes.push(0x80 | low(rest, 0x7f));
                rest >>= 7;
            }
            out.extend(bytes.iter().rev());
        }
        Content::Ref(id) => out.extend_from_slice(id.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_what_they_write_and_wait_when_they_are_cut() {
        let contents = [
            Content::Full(Kind::Commit),
            Content::Full(Kind::Tag),
            Content::Ref(ObjectId([9; 20])),
            Content::Ofs(1),
            Content::Ofs(127),
            Content::Ofs(128),
            Content::Ofs(16_511),
            Content::Ofs(16_512),
            Content::Ofs(95 << 20),
        ];
        for content in contents {
            for size in [0, 15, 16, 2047, 2048, 1 << 24, 1 << 40] {
                let mut bytes = Vec::new();
                write(&mut bytes, content, size);
                assert_eq!(parse(&bytes), Ok(Some(Header { content, size, len: bytes.len() })));
                for cut in 0..bytes.len() {
                    assert_eq!(parse(&bytes[..cut]), Ok(None));
                }
            }
        }
        assert!(parse(&[0x00]).is_err() && parse(&[0x50]).is_err());
        assert!(parse(&[0xff; 20]).is_err());
    }
}
