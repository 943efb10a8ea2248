//! pkt-lines and the side band, as in git's `gitprotocol-common` and `gitprotocol-pack`.
//!
//! A pkt-line is four hex digits that count themselves and the payload, then the payload; the
//! lengths 0 to 2 are the flush, delimiter and response-end packets.

use yard_common::Refusal;

/// Longest pkt-line in bytes, its four digits included.
pub const LINE_BYTES_MAX: usize = 65_520;
/// Longest payload of a pkt-line in bytes: 65,520 - 4.
pub const PAYLOAD_BYTES_MAX: usize = LINE_BYTES_MAX - 4;
/// Longest piece in one side-band-64k packet in bytes: 65,520 - 4 - 1.
pub const BAND_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - 1;
/// Longest piece in one packet of the old `side-band` in bytes: 1,000 - 4 - 1.
pub const SMALL_BAND_BYTES_MAX: usize = 995;

/// The flush packet.
pub const FLUSH: &[u8] = b"0000";
/// The delimiter packet of protocol v2.
pub const DELIM: &[u8] = b"0001";
/// The packet that ends a response in protocol v2 over stateless connections.
pub const RESPONSE_END: &[u8] = b"0002";

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A payload of 0 to 65,516 bytes.
    Data(&'a [u8]),
    /// `0000`
    Flush,
    /// `0001`
    Delim,
    /// `0002`
    ResponseEnd,
}

impl<'a> Packet<'a> {
    /// The payload without one newline at its end; `None` for the other packets.
    #[must_use]
    pub fn line(&self) -> Option<&'a [u8]> {
        match self {
            Self::Data(payload) => Some(payload.strip_suffix(b"\n").unwrap_or(payload)),
            _ => None,
        }
    }
}

/// What the start of some bytes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole packet, made of the first `used` bytes.
    Complete {
        /// The packet.
        packet: Packet<'a>,
        /// Bytes that it takes, its digits included.
        used: usize,
    },
    /// At least this many more bytes are needed.
    NeedMore(usize),
}

/// Reads the packet at the start of `bytes`.
///
/// # Errors
/// [`Refusal::Invalid`] when the four digits are no hex number, are 3, or exceed 65,520.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, Refusal> {
    let Some((digits, rest)) = bytes.split_at_checked(4) else {
        return Ok(Decoded::NeedMore(4 - bytes.len()));
    };
    let length = digits
        .iter()
        .try_fold(0_usize, |sum, digit| {
            char::from(*digit).to_digit(16).map(|value| sum * 16 + value as usize)
        })
        .ok_or_else(|| bad(digits, "four hex digits"))?;
    let packet = match length {
        0 => Packet::Flush,
        1 => Packet::Delim,
        2 => Packet::ResponseEnd,
        4..=LINE_BYTES_MAX => match rest.get(..length - 4) {
            Some(payload) => {
                return Ok(Decoded::Complete { packet: Packet::Data(payload), used: length });
            }
            None => return Ok(Decoded::NeedMore(length - 4 - rest.len())),
        },
        _ => return Err(bad(digits, "a length of 4 to 65520")),
    };
    Ok(Decoded::Complete { packet, used: 4 })
}

fn bad(digits: &[u8], expected: &str) -> Refusal {
    let given = String::from_utf8_lossy(digits);
    Refusal::Invalid {
        why: format!("a pkt-line starts with {given:?} instead of {expected}: is this a git client?"),
    }
}

/// Takes packets out of a body that arrives in chunks.
///
/// Holds at most what was pushed and not yet taken; the caller bounds that.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    at: usize,
}

impl Decoder {
    /// Adds the next bytes of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.extend_from_slice(chunk);
    }

    /// The next whole packet, `None` when more bytes are needed.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Refusal> {
        let ahead = self.held.get(self.at..).unwrap_or_default();
        match decode(ahead)? {
            Decoded::Complete { packet, used } => {
                self.at += used;
                Ok(Some(packet))
            }
            Decoded::NeedMore(_) => Ok(None),
        }
    }

    /// Bytes that are held and not yet taken.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.len() - self.at
    }

    /// Gives back the bytes that were not taken: where a pack follows the packets, its start.
    #[must_use]
    pub fn into_rest(mut self) -> Vec<u8> {
        self.held.drain(..self.at);
        self.held
    }
}

/// Writes one packet of at most 65,516 payload bytes; what is longer is cut there.
pub fn write_data(out: &mut Vec<u8>, payload: &[u8]) {
    let payload = payload.get(..PAYLOAD_BYTES_MAX).unwrap_or(payload);
    write_length(out, payload.len() + 4);
    out.extend_from_slice(payload);
}

/// Writes a line of text and its newline as one packet.
pub fn write_line(out: &mut Vec<u8>, line: &str) {
    let line = line.as_bytes();
    let line = line.get(..PAYLOAD_BYTES_MAX - 1).unwrap_or(line);
    write_length(out, line.len() + 5);
    out.extend_from_slice(line);
    out.push(b'\n');
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(format!("{length:04x}").as_bytes());
}

/// A body that tells a git client why its request fails, before any side band is open.
///
/// The client prints `fatal: remote error: WHY`; the status of the HTTP reply is 200.
#[must_use]
pub fn error_body(why: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_line(&mut out, &format!("ERR {why}"));
    out
}

/// Which side band a piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// 1: the data itself.
    Data = 1,
    /// 2: text for the person at the client, printed behind `remote: `.
    Progress = 2,
    /// 3: a fatal error; the client stops.
    Error = 3,
}

/// How the parts of an answer are framed, by what the client can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// No side band: data goes out bare, progress and errors are dropped.
    Bare,
    /// `side-band`: packets of at most 1,000 bytes.
    Small,
    /// `side-band-64k`: packets of at most 65,520 bytes.
    #[default]
    Large,
}

impl Framing {
    /// Writes `bytes` in as many packets as they need.
    pub fn write(self, out: &mut Vec<u8>, band: Band, bytes: &[u8]) {
        let most = match (self, band) {
            (Self::Bare, Band::Data) => return out.extend_from_slice(bytes),
            (Self::Bare, _) => return,
            (Self::Small, _) => SMALL_BAND_BYTES_MAX,
            (Self::Large, _) => BAND_BYTES_MAX,
        };
        for piece in bytes.chunks(most) {
            out.extend_from_slice(&band_header(band, piece.len()));
            out.extend_from_slice(piece);
        }
    }

    /// Writes one line of progress; the client shows it as `remote: TEXT`.
    pub fn progress(self, out: &mut Vec<u8>, text: &str) {
        self.write(out, Band::Progress, format!("{text}\n").as_bytes());
    }

    /// Writes the fatal error that ends the answer.
    pub fn error(self, out: &mut Vec<u8>, why: &str) {
        self.write(out, Band::Error, format!("{why}\n").as_bytes());
    }

    /// Writes the end of a framed answer.
    pub fn end(self, out: &mut Vec<u8>) {
        if self != Self::Bare {
            out.extend_from_slice(FLUSH);
        }
    }
}

/// The five bytes before a piece of `length` bytes (at most 65,515), for hosts that pipe the piece.
#[must_use]
pub fn band_header(band: Band, length: usize) -> [u8; 5] {
    let mut header = [b'0', b'0', b'0', b'0', band as u8];
    let total = length.min(BAND_BYTES_MAX) + 5;
    for (place, digit) in header.iter_mut().zip(format!("{total:04x}").bytes()) {
        *place = digit;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_whole_however_the_body_is_cut() {
        let mut body = Vec::new();
        write_line(&mut body, "command=ls-refs");
        body.extend_from_slice(DELIM);
        write_data(&mut body, b"");
        write_data(&mut body, &[7; PAYLOAD_BYTES_MAX]);
        body.extend_from_slice(FLUSH);
        body.extend_from_slice(RESPONSE_END);
        body.extend_from_slice(b"PACK");
        for size in [1, 3, 4, 5, 1000, body.len()] {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for chunk in body.chunks(size) {
                decoder.push(chunk);
                while seen.len() < 6
                    && let Some(packet) = decoder.next_packet().unwrap()
                {
                    seen.push(match packet {
                        Packet::Data(payload) => format!("{}", payload.len()),
                        other => format!("{other:?}"),
                    });
                }
            }
            assert_eq!(seen, ["16", "Delim", "0", "65516", "Flush", "ResponseEnd"], "chunks of {size}");
            assert_eq!(decoder.held_bytes(), 4);
            assert_eq!(decoder.into_rest(), b"PACK");
        }
    }

    #[test]
    fn a_cut_packet_says_how_much_is_missing() {
        assert_eq!(decode(b"").unwrap(), Decoded::NeedMore(4));
        assert_eq!(decode(b"00").unwrap(), Decoded::NeedMore(2));
        assert_eq!(decode(b"0009ab").unwrap(), Decoded::NeedMore(3));
    }

    #[test]
    fn lengths_that_git_never_writes_are_refused() {
        for bad in [&b"0003"[..], b"fff1", b"zzzz", b"POST / HTTP", b"-001", b"+004"] {
            assert!(matches!(decode(bad), Err(Refusal::Invalid { .. })), "{bad:?}");
        }
        assert_eq!(decode(b"fff0").unwrap(), Decoded::NeedMore(PAYLOAD_BYTES_MAX));
    }

    #[test]
    fn one_newline_is_taken_off_a_line_and_no_more() {
        assert_eq!(Packet::Data(b"done\n").line(), Some(&b"done"[..]));
        assert_eq!(Packet::Data(b"x\n\n").line(), Some(&b"x\n"[..]));
        assert_eq!(Packet::Flush.line(), None);
    }

    #[test]
    fn bands_split_at_their_limits_and_bare_drops_all_but_data() {
        let mut out = Vec::new();
        Framing::Large.write(&mut out, Band::Data, &vec![1; BAND_BYTES_MAX + 1]);
        assert_eq!(out.get(..5), Some(&b"fff0\x01"[..]));
        assert_eq!(out.get(LINE_BYTES_MAX..), Some(&b"0006\x01\x01"[..]));
        out.clear();
        Framing::Small.write(&mut out, Band::Progress, &[b'.'; 996]);
        assert_eq!(out.get(..5), Some(&b"03e8\x02"[..]));
        assert_eq!(out.len(), 1000 + 6);
        out.clear();
        Framing::Bare.progress(&mut out, "counting");
        Framing::Bare.error(&mut out, "broken");
        Framing::Bare.end(&mut out);
        assert!(out.is_empty());
        Framing::Bare.write(&mut out, Band::Data, b"PACK");
        assert_eq!(out, b"PACK");
    }

    #[test]
    fn an_error_body_is_one_packet() {
        assert_eq!(error_body("no"), b"000bERR no\n");
    }
}
