//! Deltas: apply any, write those with one common start and end.

/// Most bytes that one copy instruction takes here (git reads up to 2^24 - 1).
const COPY_BYTES_MAX: usize = 0x10000;
/// Most bytes that one insert instruction carries.
const INSERT_BYTES_MAX: usize = 127;

fn size_at(delta: &[u8], at: &mut usize) -> Option<u64> {
    let (mut size, mut shift) = (0u64, 0);
    loop {
        let byte = *delta.get(*at)?;
        *at += 1;
        if shift > 56 {
            return None;
        }
        size |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
}

/// The sizes of base and result that a delta declares, in bytes, and where its instructions start.
#[must_use]
pub fn sizes(delta: &[u8]) -> Option<(u64, u64, usize)> {
    let mut at = 0;
    let base = size_at(delta, &mut at)?;
    let result = size_at(delta, &mut at)?;
    Some((base, result, at))
}

/// The object that a delta makes of its base; never more than `bytes_max` bytes.
///
/// # Errors
/// A text that says what does not fit.
pub fn apply(base: &[u8], delta: &[u8], bytes_max: usize) -> Result<Vec<u8>, &'static str> {
    let (base_size, result_size, mut at) = sizes(delta).ok_or("a delta's sizes are cut")?;
    if base_size != base.len() as u64 {
        return Err("a delta is for a base of another size");
    }
    let size = usize::try_from(result_size).ok().filter(|size| *size <= bytes_max);
    let size = size.ok_or("a delta makes an object above the limit")?;
    let mut out = Vec::with_capacity(size);
    while let Some(op) = delta.get(at).copied() {
        at += 1;
        let piece = if op & 0x80 != 0 {
            let (from, len) = copy_at(delta, op, &mut at).ok_or("a delta's instruction is cut")?;
            base.get(from..from + len).ok_or("a delta copies from outside its base")?
        } else if op != 0 {
            let len = usize::from(op);
            at += len;
            delta.get(at - len..at).ok_or("a delta's instruction is cut")?
        } else {
            return Err("a delta has an unknown instruction");
        };
        if out.len() + piece.len() > size {
            return Err("a delta makes more than it declares");
        }
        out.extend_from_slice(piece);
    }
    if out.len() == size { Ok(out) } else { Err("a delta makes less than it declares") }
}

fn copy_at(delta: &[u8], op: u8, at: &mut usize) -> Option<(usize, usize)> {
    let mut number = |bits: std::ops::Range<u32>| {
        let mut value = 0usize;
        for (place, bit) in bits.enumerate() {
            if op & (1 << bit) != 0 {
                value |= usize::from(*delta.get(*at)?) << (8 * place);
                *at += 1;
            }
        }
        Some(value)
    };
    let from = number(0..4)?;
    let len = number(4..7)?;
    Some((from, if len == 0 { COPY_BYTES_MAX } else { len }))
}

/// A delta from `base` to `target` by their common start and end: copy, insert, copy.
///
/// Made for trees and notes, of which one entry changes at a time; O(length), no search.
#[must_use]
pub fn make(base: &[u8], target: &[u8]) -> Vec<u8> {
    let start = base.iter().zip(target).take_while(|(a, b)| a == b).count();
    let (base_rest, target_rest) =
        (base.get(start..).unwrap_or_default(), target.get(start..).unwrap_or_default());
    let end = base_rest.iter().rev().zip(target_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = Vec::with_capacity(target_rest.len() - end + 32);
    push_size(&mut out, base.len());
    push_size(&mut out, target.len());
    push_copy(&mut out, 0, start);
    let middle = target_rest.get(..target_rest.len() - end).unwrap_or_default();
    for piece in middle.chunks(INSERT_BYTES_MAX) {
        out.push(u8::try_from(piece.len()).unwrap_or(0));
        out.extend_from_slice(piece);
    }
    push_copy(&mut out, base.len() - end, end);
    out
}

fn push_size(out: &mut Vec<u8>, size: usize) {
    let mut rest = size;
    while rest > 0x7f {
        out.push(0x80 | u8::try_from(rest & 0x7f).unwrap_or(0));
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap_or(0));
}

fn push_copy(out: &mut Vec<u8>, mut from: usize, mut len: usize) {
    while len > 0 {
        let piece = len.min(COPY_BYTES_MAX);
        let op_at = out.len();
        out.push(0);
        let mut op = 0x80u8;
        for (bit, byte) in u32::try_from(from).unwrap_or(u32::MAX).to_le_bytes().into_iter().enumerate() {
            if byte != 0 {
                op |= 1 << bit;
                out.push(byte);
            }
        }
        // 64 KiB is written as length 0.
        let short = u32::try_from(if piece == COPY_BYTES_MAX { 0 } else { piece }).unwrap_or(0);
        for (bit, byte) in short.to_le_bytes().into_iter().take(3).enumerate() {
            if byte != 0 {
                op |= 1 << (bit + 4);
                out.push(byte);
            }
        }
        if let Some(place) = out.get_mut(op_at) {
            *place = op;
        }
        from += piece;
        len -= piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn deltas_make_their_target_again() {
        let mut random = Random(7);
        for _ in 0..300 {
            let len = random.below(200_000);
            let base: Vec<u8> = (0..len).map(|n| (n * 7 % 251) as u8).collect();
            let from = random.below(len + 1) as usize;
            let to = from + random.below(len - from as u64 + 1).min(300) as usize;
            let new: Vec<u8> = (0..random.below(300)).map(|n| n as u8).collect();
            let target = [&base[..from], &new, &base[to..]].concat();
            let delta = make(&base, &target);
            assert_eq!(apply(&base, &delta, 1 << 20).unwrap(), target);
            assert!(delta.len() < new.len() + 300 + 64);
        }
        assert_eq!(apply(b"", &make(b"", b"x"), 1).unwrap(), b"x");
        assert_eq!(apply(b"x", &make(b"x", b""), 1).unwrap(), b"");
    }

    #[test]
    fn a_hostile_delta_is_refused_before_it_grows() {
        let base = b"0123456789";
        for (delta, why) in [
            (&[9, 1, 0x90, 1][..], "another size"),
            (&[10, 0xff, 0xff, 0xff, 0x7f][..], "above the limit"),
            (&[10, 2, 0x90, 3][..], "more than it declares"),
            (&[10, 9, 0x90, 3][..], "less than it declares"),
            (&[10, 9, 0x91, 5, 9][..], "outside its base"),
            (&[10, 9, 0x91, 5][..], "cut"),
            (&[10, 9, 5, 1, 2][..], "cut"),
            (&[10, 9, 0][..], "unknown"),
            (&[10][..], "cut"),
            (&[0xff; 12][..], "cut"),
        ] {
            let fault = apply(base, delta, 100).unwrap_err();
            assert!(fault.contains(why), "{delta:?}: {fault}");
        }
    }
}
