//! zlib: stored blocks by hand, level 1, and inflating that never gives more than was declared.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Below this many bytes data is stored: setting up the deflater costs more than the bytes saved.
const DEFLATE_BYTES_MIN: usize = 256;

/// Appends `data` as a zlib stream of stored blocks.
pub(super) fn store(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(&[0x78, 0x01]);
    let mut blocks = data.chunks(0xffff).peekable();
    if blocks.peek().is_none() {
        out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&adler2::adler32_slice(data).to_be_bytes());
}

/// A reusable level-1 deflater.
pub(super) struct Deflater(Option<Box<Compress>>);

impl Deflater {
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// Appends `data` as a zlib stream: level 1, or stored where that is as good.
    pub(super) fn deflate(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        if data.len() < DEFLATE_BYTES_MIN {
            return store(out, data);
        }
        let start = out.len();
        let deflater = self.0.get_or_insert_with(|| Box::new(Compress::new(Compression::fast(), true)));
        deflater.reset();
        // Stored size is the bound: what does not get smaller is stored.
        out.reserve(data.len() + 64);
        let ended = deflater.compress_vec(data, out, FlushCompress::Finish);
        if !matches!(ended, Ok(Status::StreamEnd)) || out.len() - start > data.len() {
            out.truncate(start);
            store(out, data);
        }
    }
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

/// One step of inflating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Compressed bytes taken.
    pub read: usize,
    /// Inflated bytes given.
    pub written: usize,
    /// Did the stream end (its checksum was right)?
    pub ended: bool,
}

/// A reusable inflater.
pub(super) struct Inflater(Box<Decompress>);

impl Inflater {
    pub(super) fn new() -> Self {
        Self(Box::new(Decompress::new(true)))
    }

    /// Starts the next stream.
    pub(super) fn reset(&mut self) {
        self.0.reset(true);
    }

    /// Inflates from `input` into `output` as far as either goes.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, &'static str> {
        let (read, written) = (self.0.total_in(), self.0.total_out());
        let status = self.0.decompress(input, output, FlushDecompress::None);
        let status = status.map_err(|_| "its zlib stream is corrupt")?;
        let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
        Ok(Step {
            read: since(self.0.total_in(), read),
            written: since(self.0.total_out(), written),
            ended: status == Status::StreamEnd,
        })
    }
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inflater")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflate(data: &[u8], size: usize) -> Vec<u8> {
        let mut inflater = Inflater::new();
        let mut out = vec![0; size + 1];
        let step = inflater.step(data, &mut out).unwrap();
        assert!(step.ended && step.read == data.len());
        out.truncate(step.written);
        out
    }

    #[test]
    fn stored_and_deflated_streams_inflate_to_their_data() {
        let mut deflater = Deflater::new();
        let texts = [
            Vec::new(),
            vec![7; 300],
            (0..200_000u32)
                .map(|n| u8::try_from(n.wrapping_mul(n) >> 3 & 0xff).unwrap())
                .collect::<Vec<u8>>(),
            b"some source text\n".repeat(5000),
        ];
        for text in texts {
            let (mut stored, mut deflated) = (Vec::new(), Vec::new());
            store(&mut stored, &text);
            deflater.deflate(&mut deflated, &text);
            assert_eq!(inflate(&stored, text.len()), text);
            assert_eq!(inflate(&deflated, text.len()), text);
            assert!(deflated.len() <= stored.len());
        }
    }

    #[test]
    fn a_wrong_checksum_is_corrupt() {
        let mut stored = Vec::new();
        store(&mut stored, b"text");
        *stored.last_mut().unwrap() ^= 1;
        assert!(Inflater::new().step(&stored, &mut [0; 10]).is_err());
    }
}
