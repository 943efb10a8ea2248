//! As much of HTTP/1.1 as git needs: one request a connection, bodies with a length or chunked, gzip.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub protocol: Option<String>,
    pub was_gzip: bool,
    pub was_chunked: bool,
    pub body: Vec<u8>,
}

pub fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let mut words = first.split(' ');
    let method = words.next()?.to_owned();
    let target = words.next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (mut length, mut chunked, mut gzip, mut protocol) = (0, false, false, None);
    loop {
        let header = line(&mut reader)?;
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "transfer-encoding" => chunked = value == "chunked",
            "content-encoding" => gzip = value == "gzip",
            "git-protocol" => protocol = Some(value.to_owned()),
            "expect" => (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?,
            _ => {}
        }
    }
    let mut body = if chunked { read_chunks(&mut reader)? } else { exactly(&mut reader, length)? };
    if gzip {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).ok()?;
        body = plain;
    }
    let (path, query) = (path.to_owned(), query.to_owned());
    Some(Request { method, path, query, protocol, was_gzip: gzip, was_chunked: chunked, body })
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}

fn exactly(reader: &mut impl Read, length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn read_chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(reader)?, 16).ok()?;
        body.extend(exactly(reader, size)?);
        line(reader)?;
        if size == 0 {
            return Some(body);
        }
    }
}

pub fn write(mut stream: &TcpStream, status: &str, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-cache\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}
