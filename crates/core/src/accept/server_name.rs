//! Reads the name that a client requests from its first bytes: the host of an HTTP/1 request (RFC
//! 9112, section 3.2) or the server name of a TLS ClientHello (RFC 8446, section 4.1.2; RFC 6066,
//! section 3). The bytes were peeked by MSG_PEEK: the app reads and checks them again.
//!
//! The host has to be the one that the app's parser finds in the same bytes. So every line up to it is
//! checked as strictly as llhttp does by default, and a request that could be read in two ways is bad.
//! Lines behind the host are not waited for. The app refuses a second `Host` (serve/loop/clients/misdirected.ts).
//!
//! Long (over 400 lines) with its tests.

/// Result for some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Requested {
    /// More bytes are needed.
    Unfinished,
    /// `None`: a request of HTTP/1.0 without a host.
    Http(Option<String>),
    Tls(Option<String>),
    /// Neither HTTP/1 nor TLS, or a malformed request.
    BadRequest,
    BadHello,
}

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME_EXTENSION: usize = 0;
const HOST_NAME: usize = 0;
const RANDOM_BYTES: usize = 32;

/// Returns names in lower case, without a port and without a dot at the end.
pub fn requested_name(bytes: &[u8]) -> Requested {
    if is_tls(bytes) {
        return match hello_in(bytes) {
            Hello::Unfinished => Requested::Unfinished,
            Hello::Whole(hello) => {
                name_in_hello(&hello).map_or(Requested::BadHello, Requested::Tls)
            }
            Hello::Unknown => Requested::BadHello,
        };
    }
    // RFC 9112, section 2.2, asks for one empty line; llhttp skips all.
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    match begin.map(|begin| &bytes[begin..]) {
        None => Requested::Unfinished,
        Some(request) if request[0].is_ascii_uppercase() => host_in(request),
        Some(_) => Requested::BadRequest,
    }
}

/// True: the bytes are, or would become, a TLS handshake.
pub fn is_tls(bytes: &[u8]) -> bool {
    bytes.first() == Some(&HANDSHAKE_RECORD)
}

/// True: `name` matches `pattern`, which is a name, or `*.` and a suffix.
pub fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(rest) => name.len() > rest.len() && name.ends_with(rest),
        None => name == pattern,
    }
}

fn host_in(bytes: &[u8]) -> Requested {
    let mut rest = bytes;
    let Some(line) = next_line(&mut rest) else { return Requested::Unfinished };
    let (request, is_bare) = match without_cr(line) {
        Some(request) => (request, false),
        // Without a version (HTTP/0.9) llhttp takes a bare LF, and reads fields behind it.
        None => (line, true),
    };
    let (method, request) = split_at_byte(request, b' ');
    let request = request.trim_ascii_start();
    let (target, version) = split_at_byte(request, b' ');
    let is_sound = !is_bare || (is_clean(line) && target.len() == request.len());
    if !is_token(method) || target.is_empty() || !is_sound {
        return Requested::BadRequest;
    }
    // The target's host counts over `Host` (RFC 9112, section 3.2.2).
    match authority_in(target) {
        Authority::None => {}
        Authority::Of(authority) => return host_or_bad(authority),
        Authority::Bad => return Requested::BadRequest,
    }
    loop {
        let Some(line) = next_line(&mut rest) else { return Requested::Unfinished };
        let line = match without_cr(line) {
            Some([]) if version == b"HTTP/1.1" => return Requested::BadRequest,
            Some([]) => return Requested::Http(None),
            Some(line) => line,
            None => return Requested::BadRequest,
        };
        let (field, value) = split_at_byte(line, b':');
        // Also a line that continues the one before, or has no colon.
        if !is_token(field) || field.len() == line.len() {
            return Requested::BadRequest;
        }
        if field.eq_ignore_ascii_case(b"host") {
            return host_or_bad(value.trim_ascii());
        }
    }
}

/// Returns the bytes before the next LF; `None`: more are needed.
fn next_line<'bytes>(rest: &mut &'bytes [u8]) -> Option<&'bytes [u8]> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let (line, after) = rest.split_at(end);
    *rest = &after[1..];
    Some(line)
}

/// A line without its CR; `None`: it has none, or a bare CR, or a zero byte.
fn without_cr(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b"\r").filter(|line| is_clean(line))
}

fn is_clean(line: &[u8]) -> bool {
    !line.iter().any(|byte| matches!(byte, b'\r' | 0))
}

/// Splits around the first `byte`; without one the second part is empty.
fn split_at_byte(bytes: &[u8], byte: u8) -> (&[u8], &[u8]) {
    let mut parts = bytes.splitn(2, |&other| other == byte);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// True: a method or a field name. RFC 9110, section 5.6.2.
fn is_token(bytes: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_part)
}

enum Authority<'bytes> {
    /// The target has another form than the absolute one.
    None,
    Of(&'bytes [u8]),
    /// It has no host, or a user (RFC 9110, sections 4.2.1 and 4.2.4).
    Bad,
}

/// Host and port of an absolute-form target; `targetOf` in http-apps/target.ts has the same rules.
fn authority_in(target: &[u8]) -> Authority<'_> {
    let (scheme, rest) = split_at_byte(target, b':');
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_scheme =
        scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_part);
    let Some(rest) = rest.strip_prefix(b"//").filter(|_| is_scheme) else { return Authority::None };
    let authority = rest.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default();
    let is_bad = matches!(authority, [] | [b':', ..]) || authority.contains(&b'@');
    if is_bad { Authority::Bad } else { Authority::Of(authority) }
}

fn host_or_bad(host: &[u8]) -> Requested {
    let is_visible = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    match std::str::from_utf8(host) {
        Ok(text) if host.iter().all(is_visible) => Requested::Http(Some(normal(text))),
        _ => Requested::BadRequest,
    }
}

fn normal(host: &str) -> String {
    let has_port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(has_port).map_or(host, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

enum Hello {
    Unfinished,
    Whole(Vec<u8>),
    Unknown,
}

/// Joins the ClientHello from its records.
fn hello_in(bytes: &[u8]) -> Hello {
    let mut input = Input(bytes);
    let mut message = Vec::new();
    loop {
        if Input(&message).hello_bytes().is_some_and(|length| message.len() >= length) {
            return Hello::Whole(message.split_off(Input::HELLO_HEAD));
        }
        let Some(head) = input.take(3) else { return Hello::Unfinished };
        if head[0] != HANDSHAKE_RECORD || head[1] != 3 {
            return Hello::Unknown;
        }
        let Some(part) = input.sized(2) else { return Hello::Unfinished };
        message.extend_from_slice(part);
        if part.is_empty() || message[0] != CLIENT_HELLO {
            return Hello::Unknown;
        }
    }
}

/// The name in a ClientHello after its head; outer `None`: the bytes are no ClientHello.
fn name_in_hello(hello: &[u8]) -> Option<Option<String>> {
    let mut input = Input(hello);
    input.take(2 + RANDOM_BYTES)?; // version
    input.sized(1)?; // session
    input.sized(2)?; // cipher suites
    input.sized(1)?; // compression
    if input.0.is_empty() {
        return Some(None); // from TLS 1.2 and older: no extensions at all
    }
    let mut extensions = Input(input.sized(2)?);
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let content = extensions.sized(2)?;
        if kind != SERVER_NAME_EXTENSION {
            continue;
        }
        let mut names = Input(Input(content).sized(2)?);
        while !names.0.is_empty() {
            let kind = names.number(1)?;
            let name = names.sized(2)?;
            if kind == HOST_NAME {
                return Some(Some(normal(std::str::from_utf8(name).ok()?)));
            }
        }
    }
    Some(None)
}

/// Bytes that are left to read.
struct Input<'bytes>(&'bytes [u8]);

impl<'bytes> Input<'bytes> {
    /// Kind and length of a handshake message.
    const HELLO_HEAD: usize = 4;

    fn take(&mut self, bytes: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `bytes` bytes, in network order.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        let bytes = self.take(bytes)?;
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Content after a length of `length_bytes` bytes.
    fn sized(&mut self, length_bytes: usize) -> Option<&'bytes [u8]> {
        let length = self.number(length_bytes)?;
        self.take(length)
    }

    /// Length of the handshake message at the start, with its head.
    fn hello_bytes(&mut self) -> Option<usize> {
        self.take(1)?;
        Some(self.number(3)? + Input::HELLO_HEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(length_bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = content.len().to_be_bytes();
        [&length[length.len() - length_bytes..], content].concat()
    }

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let body = [
            &[3, 3][..],
            &[7; RANDOM_BYTES],
            &sized(1, &[1; 32]),
            &sized(2, &[0x13, 0x01]),
            &sized(1, &[0]),
            extensions,
        ];
        [&[CLIENT_HELLO][..], &sized(3, &body.concat())].concat()
    }

    fn extension(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[0, kind][..], &sized(2, content)].concat()
    }

    fn with_name(name: &str) -> Vec<u8> {
        let entry = [&[0][..], &sized(2, name.as_bytes())].concat();
        let list = extension(0, &sized(2, &entry));
        hello(&sized(2, &[extension(10, b"groups"), list, extension(16, b"alpn")].concat()))
    }

    /// Splits a message into records of `bytes` bytes.
    fn records(message: &[u8], bytes: usize) -> Vec<u8> {
        let record = |part| [&[HANDSHAKE_RECORD, 3, 1][..], &sized(2, part)].concat();
        message.chunks(bytes).flat_map(record).collect()
    }

    fn name(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn the_host_of_a_request_is_found_as_soon_as_its_line_is_whole() {
        let request = b"GET / HTTP/1.1\r\nAccept: */*\r\nhOsT:  A.Example.:8080 \r\nX: y\r\n\r\n";
        let end = request.windows(2).position(|pair| pair == b"X:").expect("the next line");
        for length in 0..end {
            assert_eq!(requested_name(&request[..length]), Requested::Unfinished, "{length}");
        }
        for length in end..=request.len() {
            assert_eq!(requested_name(&request[..length]), Requested::Http(name("a.example")));
        }
    }

    #[test]
    fn ports_go_and_addresses_stay() {
        for (host, expected) in [
            ("a.example", "a.example"),
            ("a.example:80", "a.example"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("a.example:http", "a.example:http"),
            ("", ""),
        ] {
            let request = format!("GET / HTTP/1.1\r\nHost:{host}\r\n");
            assert_eq!(requested_name(request.as_bytes()), Requested::Http(name(expected)));
        }
    }

    #[test]
    fn only_an_old_request_may_have_no_host() {
        for request in
            ["GET / HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /\r\n\r\n"]
        {
            assert_eq!(requested_name(request.as_bytes()), Requested::Http(None), "{request}");
        }
        let missing = b"GET / HTTP/1.1\r\nA: b\r\n\r\nHost: a\r\n";
        assert_eq!(requested_name(missing), Requested::BadRequest);
    }

    #[test]
    fn empty_lines_before_a_request_are_skipped() {
        for empty in ["\r\n", "\n", "\r\n\r\n\n", "\r"] {
            assert_eq!(requested_name(empty.as_bytes()), Requested::Unfinished);
            let request = format!("{empty}GET / HTTP/1.1\r\nHost: a\r\n");
            assert_eq!(requested_name(request.as_bytes()), Requested::Http(name("a")));
        }
    }

    #[test]
    fn a_line_without_a_version_may_end_in_a_bare_lf() {
        for (request, expected) in [
            ("GET http://b\nHost: a\r\n\r\n", Some("b")),
            ("GET http://b?q\r\nHost: a\r\n\r\n", Some("b")),
            ("GET /\nHost: a\r\n\r\n", Some("a")),
            ("GET  *\nX: y\r\nHost: a\r\n\r\n", Some("a")),
            ("GET / \nHost: a\r\n\r\n", None),
            ("GET / HTTP/1.0\nHost: a\r\n\r\n", None),
            ("GET /\nHost: a\n\r\n", None),
            ("GET /\n\nHost: a\r\n\r\n", None),
            ("GET http://b\r\r\nHost: a\r\n\r\n", None),
            ("GET http://b\rHost: a\nHost: a\r\n\r\n", None),
            ("GET http://b/\0\nHost: a\r\n\r\n", None),
        ] {
            let expected =
                expected.map_or(Requested::BadRequest, |host| Requested::Http(name(host)));
            assert_eq!(requested_name(request.as_bytes()), expected, "{request:?}");
        }
    }

    #[test]
    fn the_host_of_the_target_counts_over_the_field() {
        for (target, expected) in [
            ("http://b/", Some("b")),
            ("HTTP://B.Example.:80/path", Some("b.example")),
            ("https://b?query", Some("b")),
            ("http://b#place", Some("b")),
            ("http://b", Some("b")),
            ("http://[::1]:80/", Some("[::1]")),
            ("/http://b/", Some("a")),
            ("//b/", Some("a")),
            ("*", Some("a")),
            ("b:443", Some("a")),
            ("http:b/", Some("a")),
            ("http://user@b/", None),
            ("http://b@user:80/", None),
            ("http:///path", None),
            ("http://:80/", None),
            ("http://", None),
            ("http://b\t/", None),
        ] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let expected =
                expected.map_or(Requested::BadRequest, |host| Requested::Http(name(host)));
            assert_eq!(requested_name(request.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_bad() {
        for request in [
            "GET / HTTP/1.1\r\nX: a\r\n Host: b\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nX: a\r\n\tHost: b\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n: b\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nX: b\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nX: b\rHost: b\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nX: \0\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\u{1}\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET\r\nHost: a\r\n\r\n",
            "GET \r\nHost: a\r\n\r\n",
            "G\n\nHost: a\n",
        ] {
            assert_eq!(requested_name(request.as_bytes()), Requested::BadRequest, "{request:?}");
        }
        for host in [&b"\xff"[..], b"a\xa0", b"a\x7f"] {
            let request = [&b"GET / HTTP/1.1\r\nHost: "[..], host, b"\r\n"].concat();
            assert_eq!(requested_name(&request), Requested::BadRequest, "{host:?}");
        }
    }

    #[test]
    fn the_name_of_a_hello_is_found_once_all_of_it_is_there() {
        let message = with_name("A.example");
        for bytes in [1, 7, message.len()] {
            let records = records(&message, bytes);
            for length in 0..records.len() {
                assert_eq!(requested_name(&records[..length]), Requested::Unfinished, "{length}");
            }
            assert_eq!(requested_name(&records), Requested::Tls(name("a.example")));
        }
    }

    #[test]
    fn a_hello_without_a_name_has_none() {
        let other = extension(10, b"groups");
        let no_host = extension(0, &sized(2, &[&[9][..], &sized(2, b"a")].concat()));
        for message in [hello(&[]), hello(&sized(2, &other)), hello(&sized(2, &no_host))] {
            assert_eq!(requested_name(&records(&message, 512)), Requested::Tls(None));
        }
    }

    #[test]
    fn bytes_of_another_protocol_are_refused_at_once() {
        let cut = hello(&sized(2, &[0, 0, 0, 9])[..]);
        let no_hello = [2, 0, 0, 1, 0];
        for bytes in [&b"\0"[..], b"get / HTTP/1.1\r\n", b" GET", b"\r\n\0"] {
            assert_eq!(requested_name(bytes), Requested::BadRequest, "{bytes:?}");
        }
        for bytes in [
            &[HANDSHAKE_RECORD, 2, 0][..],
            &[HANDSHAKE_RECORD, 3, 1, 0, 0],
            &records(&no_hello, 9),
            &records(&cut, 512),
        ] {
            assert_eq!(requested_name(bytes), Requested::BadHello, "{bytes:?}");
        }
    }

    #[test]
    fn no_bytes_make_it_fail() {
        let message = records(&with_name("a.example"), 60);
        let mut seed = 7_u64;
        let mut dice = move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..20_000 {
            let mut bytes = message.clone();
            for _ in 0..=dice() % 4 {
                let at = dice() % bytes.len();
                bytes[at] = dice() as u8;
            }
            bytes.truncate(dice() % (bytes.len() + 1));
            requested_name(&bytes);
        }
    }

    #[test]
    fn a_star_stands_for_at_least_one_label() {
        assert!(is_match("a.example", "a.example"));
        assert!(!is_match("a.example", "b.a.example"));
        assert!(is_match("*.example", "a.example") && is_match("*.example", "b.a.example"));
        assert!(!is_match("*.example", "example") && !is_match("*.example", ".example"));
    }
}
