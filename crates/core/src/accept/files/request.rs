//! Requests that can be answered with a cached file: `GET` and `HEAD` in HTTP/1.1 without anything unusual.
//! Whatever is doubtful is left to the loop, which answers it by Node's rules: so no request is understood in
//! two ways.

/// Fields of a head; one with more is left to the loop.
const MAX_FIELDS: usize = 64;

/// A request for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'bytes> {
    /// Length of the head, and so of the request.
    pub size: usize,
    pub is_head: bool,
    pub target: &'bytes [u8],
    /// Empty without the field.
    pub accept_encoding: &'bytes [u8],
    pub if_none_match: Option<&'bytes [u8]>,
    pub if_modified_since: Option<&'bytes [u8]>,
    pub range: Option<Range>,
    /// True: the client asks for an answer without caches, so conditions do not apply (as in the package `fresh`).
    pub reloads: bool,
}

/// One range of bytes (RFC 9110, section 14.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From the first to the last, or to the end.
    From(u64, Option<u64>),
    /// The last bytes, this number of them.
    Last(u64),
}

impl Range {
    fn parse(value: &[u8]) -> Option<Range> {
        let (first, last) =
            std::str::from_utf8(value).ok()?.strip_prefix("bytes=")?.split_once('-')?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_plain { text.parse().ok() } else { None }
        };
        match (first, last) {
            ("", last) => Some(Range::Last(number(last)?)),
            (first, "") => Some(Range::From(number(first)?, None)),
            (first, last) => Some(Range::From(number(first)?, Some(number(last)?))),
        }
    }
}

/// Fields that are read here, each at most once.
#[derive(Default)]
struct Fields<'bytes> {
    host: Option<&'bytes [u8]>,
    connection: Option<&'bytes [u8]>,
    accept_encoding: Option<&'bytes [u8]>,
    if_none_match: Option<&'bytes [u8]>,
    if_modified_since: Option<&'bytes [u8]>,
    range: Option<&'bytes [u8]>,
    reloads: bool,
}

impl<'bytes> Fields<'bytes> {
    /// Adds a field. False: the request is not for this thread.
    fn add(&mut self, name: &str, value: &'bytes [u8]) -> bool {
        let name = name.to_ascii_lowercase();
        let place = match name.as_str() {
            "host" => &mut self.host,
            "connection" => &mut self.connection,
            "accept-encoding" => &mut self.accept_encoding,
            "if-none-match" => &mut self.if_none_match,
            "if-modified-since" => &mut self.if_modified_since,
            "range" => &mut self.range,
            "cache-control" | "pragma" => {
                self.reloads = true;
                return true;
            }
            "content-length"
            | "transfer-encoding"
            | "expect"
            | "upgrade"
            | "if-match"
            | "if-unmodified-since"
            | "if-range"
            | "te"
            | "trailer"
            | "http2-settings" => {
                return false;
            }
            _ => return true,
        };
        place.replace(value).is_none()
    }
}

/// The request at the start of `bytes`. `None`: it is not whole, or not for this thread.
pub fn parse(bytes: &[u8]) -> Option<Request<'_>> {
    // The parser skips empty lines before a request; Node decides about these.
    if !bytes.starts_with(b"GET /") && !bytes.starts_with(b"HEAD /") {
        return None;
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(size) = parsed.parse(bytes).ok()? else { return None };
    if parsed.version != Some(1) || !has_plain_line_ends(&bytes[..size]) {
        return None;
    }
    let mut known = Fields::default();
    if !parsed.headers.iter().all(|field| known.add(field.name, field.value)) {
        return None;
    }
    let keeps_alive =
        known.connection.is_none_or(|value| value.eq_ignore_ascii_case(b"keep-alive"));
    if known.host.is_none_or(<[u8]>::is_empty) || !keeps_alive {
        return None;
    }
    let range = match known.range {
        Some(value) => Some(Range::parse(value)?),
        None => None,
    };
    let is_head = parsed.method == Some("HEAD");
    let is_conditional = known.if_none_match.is_some() || known.if_modified_since.is_some();
    if range.is_some() && (is_head || is_conditional) {
        return None;
    }
    Some(Request {
        size,
        is_head,
        target: parsed.path?.as_bytes(),
        accept_encoding: known.accept_encoding.unwrap_or_default(),
        if_none_match: known.if_none_match,
        if_modified_since: known.if_modified_since,
        range,
        reloads: known.reloads,
    })
}

/// True: CR and LF come in pairs. The parser takes a LF alone as well.
fn has_plain_line_ends(head: &[u8]) -> bool {
    let is_pair = |at: usize| match head[at] {
        b'\r' => head.get(at + 1) == Some(&b'\n'),
        b'\n' => at > 0 && head[at - 1] == b'\r',
        _ => true,
    };
    (0..head.len()).all(is_pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> String {
        format!("GET /a.js HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
    }

    #[test]
    fn a_plain_request_is_read() {
        let text = "HEAD /a%20b?c HTTP/1.1\r\nhost: a\r\nAccept-Encoding: gzip, br\r\n\r\nGET";
        let request = parse(text.as_bytes()).expect("plain");
        assert_eq!(request.size, text.len() - 3);
        assert!(request.is_head && !request.reloads);
        assert_eq!(request.target, b"/a%20b?c");
        assert_eq!(request.accept_encoding, b"gzip, br");
        let text =
            head("If-None-Match: \"1\"\r\nIf-Modified-Since: now\r\nCache-Control: no-cache\r\n");
        let request = parse(text.as_bytes()).expect("plain");
        assert_eq!(request.if_none_match, Some(b"\"1\"".as_slice()));
        assert_eq!(request.if_modified_since, Some(b"now".as_slice()));
        assert!(request.reloads);
        assert!(parse(head("Connection: Keep-Alive\r\nX-Other: 1\r\n").as_bytes()).is_some());
    }

    #[test]
    fn ranges_are_read() {
        for (value, range) in [
            ("bytes=0-9", Range::From(0, Some(9))),
            ("bytes=5-", Range::From(5, None)),
            ("bytes=-7", Range::Last(7)),
        ] {
            let text = head(&format!("Range: {value}\r\n"));
            assert_eq!(parse(text.as_bytes()).expect(value).range, Some(range));
        }
        for value in ["bytes=", "bytes=-", "bytes=a-b", "bytes=+1-2", "bytes=0-1,3-4", "lines=1-2"]
        {
            let text = head(&format!("Range: {value}\r\n"));
            assert_eq!(parse(text.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn what_is_doubtful_is_left_to_the_loop() {
        for text in [
            "GET /a.js HTTP/1.1\r\n\r\n".into(),
            "GET /a.js HTTP/1.1\r\nHost:\r\n\r\n".into(),
            "GET /a.js HTTP/1.0\r\nHost: a\r\n\r\n".into(),
            "GET /a.js HTTP/2.0\r\nHost: a\r\n\r\n".into(),
            "GET  /a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "GET /a.js\r\n\r\n".into(),
            "GET a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "GET http://a/a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "get /a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "POST /a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "\r\nGET /a.js HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "GET /a.js HTTP/1.1\nHost: a\n\n".into(),
            "GET /a.js HTTP/1.1\r\nHost: a\n\r\n".into(),
            "GET /a.js HTTP/1.1\r\nHost: a\r\n".into(),
            head("Host: b\r\n"),
            head("Content-Length: 0\r\n"),
            head("Content-Length : 0\r\n"),
            head("Transfer-Encoding: chunked\r\n"),
            head("transfer-encoding:\r\n"),
            head("Connection: close\r\n"),
            head("Connection: keep-alive, upgrade\r\n"),
            head("Upgrade: websocket\r\n"),
            head("Expect: 100-continue\r\n"),
            head("If-Match: \"a\"\r\n"),
            head("If-Unmodified-Since: now\r\n"),
            head("If-Range: \"a\"\r\nRange: bytes=0-1\r\n"),
            head("If-None-Match: \"a\"\r\nRange: bytes=0-1\r\n"),
            head("If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n"),
            head("Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n"),
            head(" folded: 1\r\n"),
            head("X-A: 1\r\n folded\r\n"),
            head("X-A: 1\x0b\r\n"),
            head("X-A: 1\0\r\n"),
            head("X A: 1\r\n"),
            head(": 1\r\n"),
            head("X-A\r\n"),
            head("X-A: 1\rX-B: 2\r\n"),
            head(&"X-A: 1\r\n".repeat(MAX_FIELDS)),
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn every_beginning_of_a_request_is_left_to_the_loop() {
        let text = head("Accept: */*\r\n");
        for size in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..size]), None);
        }
        assert!(parse(text.as_bytes()).is_some());
    }

    #[test]
    fn no_bytes_make_it_panic_and_what_it_reads_ends_where_it_says() {
        let seeds = [head("Range: bytes=1-2\r\nAccept: a\r\n"), head("If-None-Match: \"a\"\r\n")];
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..100_000 {
            let mut bytes = seeds[round % seeds.len()].clone().into_bytes();
            for _ in 0..1 + next() % 3 {
                let at = next() as usize % bytes.len();
                match next() % 3 {
                    0 => bytes[at] = b"\r\n\0 :\t\xffaZ"[next() as usize % 9],
                    1 => bytes.insert(at, b"\r\n :"[next() as usize % 4]),
                    _ => {
                        bytes.remove(at);
                    }
                }
            }
            if let Some(request) = parse(&bytes) {
                assert!(bytes[..request.size].ends_with(b"\r\n\r\n"));
                let within = &bytes[..request.size - 4];
                assert!(!within.windows(4).any(|each| each == b"\r\n\r\n"));
            }
        }
    }
}
