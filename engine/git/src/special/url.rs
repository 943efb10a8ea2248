//! URLs of submodules that make git do something else than fetch from there.
//!
//! - a dash at the start is read as an option (CVE-2018-17456);
//! - a line break, also an escaped one, feeds the credential helper another host (CVE-2020-5260);
//! - a relative URL that climbs and goes on with `:` or `/`, and an HTTP URL without a host or that cannot be
//!   read, name another host (CVE-2020-11008).

/// Does git refuse it?
pub(super) fn is_bad(url: &[u8]) -> bool {
    if url.starts_with(b"-") {
        return true;
    }
    if step(url).is_some() || url.starts_with(b"git://") {
        let (climbs, rest) = after_steps(url);
        return breaks(url) || (climbs && matches!(rest.first(), Some(b':' | b'/')));
    }
    match of_http(url) {
        Some(url) => normal(url).is_none_or(|url| breaks(&url)),
        None => false,
    }
}

/// A leading `./` or `../`, on Windows too: does it climb, and what follows?
fn step(url: &[u8]) -> Option<(bool, &[u8])> {
    let (climbs, rest) = match url.strip_prefix(b"..") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix(b".")?),
    };
    match rest.split_first() {
        Some((b'/' | b'\\', rest)) => Some((climbs, rest)),
        _ => None,
    }
}

fn after_steps(mut url: &[u8]) -> (bool, &[u8]) {
    let mut climbs = false;
    while let Some((up, rest)) = step(url) {
        climbs |= up;
        url = rest;
    }
    (climbs, url)
}

/// What `git-remote-curl` would be given.
fn of_http(url: &[u8]) -> Option<&[u8]> {
    const SCHEMES: [&[u8]; 4] = [b"http", b"https", b"ftp", b"ftps"];
    SCHEMES.iter().find_map(|scheme| {
        let rest = url.strip_prefix(*scheme)?;
        if rest.starts_with(b"://") { Some(url) } else { rest.strip_prefix(b"::") }
    })
}

fn escape(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Is there a line break, plain or behind the scheme as an escape?
fn breaks(url: &[u8]) -> bool {
    let colon = url.iter().position(|byte| *byte == b':').unwrap_or(0);
    let (scheme, mut rest) = url.split_at(colon);
    if scheme.contains(&b'\n') {
        return true;
    }
    while let Some((byte, after)) = rest.split_first() {
        let escaped = (*byte == b'%').then(|| escape(after)).flatten().filter(|byte| *byte != 0);
        if escaped.unwrap_or(*byte) == b'\n' {
            return true;
        }
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    false
}

const UNSAFE: &[u8] = b" <>\"%{}|\\^`";
const RESERVED: &[u8] = b":/?#[]@!$&'()*+,;=";

/// Appends with escapes only where they must be; `None` for a broken escape.
fn append(out: &mut Vec<u8>, mut text: &[u8]) -> Option<()> {
    while let Some((byte, after)) = text.split_first() {
        let (mut byte, mut escaped) = (*byte, false);
        text = after;
        if byte == b'%' {
            byte = escape(after)?;
            text = after.get(2..)?;
            escaped = true;
        }
        let keep = escaped && RESERVED.contains(&byte);
        if !matches!(byte, 0x20..=0x7e) || UNSAFE.contains(&byte) || keep {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
    Some(())
}

fn find(text: &[u8], any: &[u8]) -> usize {
    text.iter().position(|byte| any.contains(byte)).unwrap_or(text.len())
}

/// The URL in git's normal form; `None` when it is none.
///
/// Rules: RFC 3986 as git's `urlmatch.c` applies it: a scheme, a host but for `file:`, a port of 1 to 65535,
/// whole escapes, no `..` above the root.
fn normal(url: &[u8]) -> Option<Vec<u8>> {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    let length = url.iter().take_while(|byte| is_scheme(byte)).count();
    let (scheme, rest) = url.split_at_checked(length)?;
    let rest = rest.strip_prefix(b"://")?;
    if !scheme.first()?.is_ascii_alphabetic() {
        return None;
    }
    let mut out = scheme.to_ascii_lowercase();
    let is_file = out == b"file";
    out.extend_from_slice(b"://");
    let (mut authority, path) = rest.split_at_checked(find(rest, b"/?#"))?;
    if let Some(at) = authority.iter().position(|byte| *byte == b'@') {
        append(&mut out, authority.get(..at)?)?;
        out.push(b'@');
        authority = authority.get(at + 1..)?;
    }
    host(&mut out, authority, is_file)?;
    let query = segments(&mut out, path)?;
    append(&mut out, query)?;
    Some(out)
}

fn host(out: &mut Vec<u8>, authority: &[u8], is_file: bool) -> Option<()> {
    let has_host = authority.first().is_some_and(|byte| *byte != b':');
    if !has_host && !is_file {
        return None;
    }
    let last = authority.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let colon = last.filter(|at| authority.get(*at) == Some(&b':'));
    let (name, port) = authority.split_at_checked(colon.unwrap_or(authority.len()))?;
    if !name.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_[:]".contains(byte)) {
        return None;
    }
    out.extend_from_slice(&name.to_ascii_lowercase());
    let Some(port) = port.strip_prefix(b":").filter(|port| !port.is_empty()) else { return Some(()) };
    if !has_host {
        return None;
    }
    let zeros = port.iter().take_while(|digit| **digit == b'0').count().min(port.len() - 1);
    let port = std::str::from_utf8(port.get(zeros..)?).ok()?;
    if !port.bytes().all(|digit| digit.is_ascii_digit()) || port.parse::<u16>().ok()? == 0 {
        return None;
    }
    out.extend_from_slice(format!(":{port}").as_bytes());
    Some(())
}

/// Appends the path without its dot segments; gives what follows the path.
fn segments<'a>(out: &mut Vec<u8>, path: &'a [u8]) -> Option<&'a [u8]> {
    let root = out.len();
    out.push(b'/');
    let mut rest = path.strip_prefix(b"/").unwrap_or(path);
    loop {
        let start = out.len();
        let (segment, after) = rest.split_at_checked(find(rest, b"/?#"))?;
        append(out, segment)?;
        let mut slash = true;
        match out.get(start..)? {
            b"." if start == root + 1 => {
                out.truncate(start);
                slash = false;
            }
            b"." => out.truncate(start - 1),
            b".." if start == root + 1 => return None,
            b".." => {
                let before = out.get(..start - 1)?.iter().rposition(|byte| *byte == b'/')?;
                slash = before != root;
                out.truncate(if slash { before } else { root + 1 });
            }
            _ => {}
        }
        let Some(next) = after.strip_prefix(b"/") else { return Some(after) };
        rest = next;
        if slash {
            out.push(b'/');
        }
    }
}
