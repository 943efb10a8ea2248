//! The log of a run on its way to the platform: what the command wrote to a file, in segments.
//!
//! The runner's token is cut out, also where a test gets hold of it and prints it. Of a command that
//! prints faster than it is sent, the middle is left out.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use yard_wire::lane::{LOG_HEAD_BYTES, LOG_TAIL_BYTES, SEGMENT_BYTES_MAX, Segment};

use crate::git;

/// Bytes read for one segment: each may be no UTF-8 and take three.
const READ_BYTES_MAX: usize = SEGMENT_BYTES_MAX / 3;
/// What stands where a secret was; no longer than any secret.
const CUT_OUT: &[u8] = b"[token]";

/// The file, and how far it is sent.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    /// What must not be seen: the token, and git's header with it.
    secrets: Vec<Vec<u8>>,
    /// Bytes of the file that are read.
    read: u64,
    /// The last of them, which may be the beginning of a secret or of a character.
    held: Vec<u8>,
    /// Bytes of the log that segments and gaps have reached.
    place: u64,
    /// A segment that has not arrived yet.
    pending: Option<Segment>,
}

impl LogFile {
    /// An empty log.
    pub fn create(path: &Path, token: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        let header = git::authorization(token);
        let encoded = header.rsplit(' ').next().unwrap_or_default();
        let secrets = [token, encoded].map(|secret| secret.as_bytes().to_vec());
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= CUT_OUT.len()).collect();
        Ok(Self { file, secrets, read: 0, held: Vec::new(), place: 0, pending: None })
    }

    /// The next segment; the same again until it is [`taken`](Self::taken). With `last` nothing is held
    /// back. A log that cannot be read ends here.
    pub fn next(&mut self, last: bool) -> Option<Segment> {
        if self.pending.is_none() {
            self.pending = self.read_on(last).ok().flatten();
        }
        self.pending.clone()
    }

    /// The segment has arrived.
    pub fn taken(&mut self) {
        self.pending = None;
    }

    /// Is there anything behind the pending segment?
    pub fn has_more(&self) -> bool {
        let length = self.file.metadata().map_or(0, |meta| meta.len());
        !self.held.is_empty() || length > self.read
    }

    /// Adds a line of the runner's own.
    pub fn say(&mut self, line: &str) {
        let written = self.file.seek(SeekFrom::End(0));
        // The report says the same: a line that cannot be written is no loss.
        let _ = written.and_then(|_| writeln!(self.file, "\n[yard runner: {line}]"));
    }

    /// The text without the secrets.
    pub fn without_secrets(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.clean(text.as_bytes().to_vec())).into_owned()
    }

    fn read_on(&mut self, last: bool) -> io::Result<Option<Segment>> {
        let length = self.file.metadata()?.len();
        if self.read >= LOG_HEAD_BYTES && length.saturating_sub(self.read) > LOG_TAIL_BYTES {
            self.skip_to(length - LOG_TAIL_BYTES);
        }
        let room = READ_BYTES_MAX.saturating_sub(self.held.len()) as u64;
        let wanted = length.saturating_sub(self.read).min(room);
        let mut data = std::mem::take(&mut self.held);
        self.file.seek(SeekFrom::Start(self.read))?;
        self.read += io::Read::by_ref(&mut self.file).take(wanted).read_to_end(&mut data)? as u64;
        // Whole secrets first: what looks like the beginning of one may be the end of another.
        data = self.clean(data);
        if !(last && self.read >= length) {
            let keep = data.len().saturating_sub(self.hold(&data));
            self.held = data.split_off(keep);
        }
        let text = String::from_utf8_lossy(&data).into_owned();
        if text.is_empty() {
            return Ok(None);
        }
        let segment = Segment { start: self.place, text };
        self.place = segment.end();
        Ok(Some(segment))
    }

    /// Leaves out what lies before, and so much more that nothing of a secret is left that began there.
    fn skip_to(&mut self, place: u64) {
        let longest = self.secrets.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let to = place + longest;
        self.place += to - self.read + self.held.len() as u64;
        self.held.clear();
        self.read = to;
    }

    /// Bytes at the end that may be the beginning of a secret or of a character.
    fn hold(&self, data: &[u8]) -> usize {
        let begun = |secret: &Vec<u8>| {
            let most = secret.len().saturating_sub(1).min(data.len());
            (1..=most).rev().find(|count| secret.get(..*count).is_some_and(|begin| data.ends_with(begin)))
        };
        let secret = self.secrets.iter().filter_map(begun).max().unwrap_or(0);
        secret.max(open_character(data))
    }

    fn clean(&self, mut data: Vec<u8>) -> Vec<u8> {
        for secret in &self.secrets {
            while let Some(at) = data.windows(secret.len()).position(|window| window == secret) {
                data.splice(at..at + secret.len(), CUT_OUT.iter().copied());
            }
        }
        data
    }
}

/// Bytes at the end of a UTF-8 text whose character is not complete.
fn open_character(data: &[u8]) -> usize {
    for (count, byte) in data.iter().rev().take(3).enumerate().map(|(n, byte)| (n + 1, *byte)) {
        let whole = match byte {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => return 0,
        };
        return if count < whole { count } else { 0 };
    }
    0
}
