//! Request bodies that git has compressed: it gzips fetch requests over 1 KiB.

use std::io::Write as _;

use flate2::write::GzDecoder;
use yard_common::Refusal;

/// Compressed bytes taken at once: 4 KiB become 4 MiB at most (deflate's ratio is below 1,032).
const STEP_BYTES: usize = 4 * 1024;

/// Inflates a body that arrives in chunks, up to a limit.
pub struct Gunzip {
    decoder: GzDecoder<Vec<u8>>,
    made: u64,
    limit: u64,
}

fn corrupt() -> Refusal {
    Refusal::Invalid { why: "the compressed body is cut or corrupt: send it again".into() }
}

impl Gunzip {
    /// Inflates to at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), made: 0, limit }
    }

    /// The bytes that a chunk gives.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for what is no gzip, [`Refusal::TooLarge`] above the limit.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<u8>, Refusal> {
        for step in chunk.chunks(STEP_BYTES) {
            self.decoder.write_all(step).map_err(|_| corrupt())?;
            let size = self.made + self.decoder.get_ref().len() as u64;
            if size > self.limit {
                return Err(Refusal::TooLarge { what: "the inflated body".into(), size, limit: self.limit });
            }
        }
        Ok(self.taken())
    }

    /// The last bytes, when the body has ended.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when it ended too early.
    pub fn end(&mut self) -> Result<Vec<u8>, Refusal> {
        self.decoder.try_finish().map_err(|_| corrupt())?;
        Ok(self.taken())
    }

    fn taken(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(self.decoder.get_mut());
        self.made += bytes.len() as u64;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_body_comes_out_whole_however_it_is_cut() {
        let plain: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for size in [1, 7, 1000, 1 << 20] {
            let mut gunzip = Gunzip::new(1 << 20);
            let mut out = Vec::new();
            for chunk in gzip(&plain).chunks(size) {
                out.extend(gunzip.push(chunk).unwrap());
            }
            out.extend(gunzip.end().unwrap());
            assert!(out == plain, "chunks of {size}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit_and_a_cut_body_is_told() {
        let bomb = gzip(&vec![0; 50 << 20]);
        assert!(matches!(Gunzip::new(1 << 20).push(&bomb), Err(Refusal::TooLarge { .. })));
        let whole = gzip(b"0011command=fetch");
        let mut cut = Gunzip::new(100);
        cut.push(&whole[..whole.len() - 9]).unwrap();
        assert!(cut.end().is_err());
        assert!(Gunzip::new(100).push(b"POST / HTTP").is_err());
    }
}
