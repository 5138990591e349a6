//! A file in the cache: the head that a loop has sent with it, and its bytes.

use super::request::{Range, Request};
use crate::error::{CoreError, Result};
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};
use crate::sys::{self, FileStamp};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Files up to this size are in memory: one system call sends head and body.
const MAX_IN_MEMORY: u64 = 32 * 1024;
/// A file or folder that was changed within this time may change again without another time stamp.
const SETTLED_NS: i128 = 100_000_000;
/// The validators of a file that was modified within a second are weak (validators.ts): they would become old.
const STRONG_NS: i128 = 1_100_000_000;

/// A file that a loop has sent.
pub struct FileSource<'source> {
    /// Path by which it was opened.
    pub path: PathBuf,
    pub file: BorrowedFd<'source>,
    /// Names and values of the fields for the whole file, without those of the connection.
    pub fields: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct CachedFile {
    path: PathBuf,
    folder: PathBuf,
    stamp: FileStamp,
    /// Stamp of the folder: a variant that is added or removed (`app.js.br`) changes it.
    folder_stamp: FileStamp,
    /// Turn of the thread in which it was checked last.
    checked_in: AtomicU32,
    bytes: Bytes,
    whole: String,
    /// Without the fields of the content.
    not_modified: String,
    /// Without the length.
    partial: String,
    entity_tag: Option<String>,
    last_modified: Option<String>,
}

#[derive(Debug)]
enum Bytes {
    Memory(Box<[u8]>),
    File(OwnedFd),
}

/// Answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status and fields of the file; the date and the end of the head are missing.
    pub head: String,
    /// Bytes of the file that follow.
    pub start: u64,
    pub count: u64,
}

impl CachedFile {
    /// Fails when the file is not one that can be trusted: it has changed since it was opened, or just before.
    pub fn new(source: FileSource<'_>) -> Result<CachedFile> {
        let unfit = || CoreError::Corrupt { what: "a file", value: 0 };
        let FileSource { path, file, fields } = source;
        let folder = path.parent().ok_or_else(unfit)?.to_path_buf();
        let stamp = sys::stamp_of_file(file).ok_or_else(unfit)?;
        let folder_stamp = sys::stamp_of_path(&folder).ok_or_else(unfit)?;
        let now_ns = sys::real_time_ns();
        let is_settled = |stamp: FileStamp| now_ns - stamp.changed_ns() >= SETTLED_NS;
        let is_strong = now_ns - stamp.modified_ns() >= STRONG_NS;
        if !is_strong || !is_settled(stamp) || !is_settled(folder_stamp) || !stamp.is_file() {
            return Err(unfit());
        }
        let bytes = if stamp.size <= MAX_IN_MEMORY {
            let mut bytes = vec![0; stamp.size as usize];
            sys::read_exact_at(file, &mut bytes, 0)?;
            Bytes::Memory(bytes.into())
        } else {
            Bytes::File(sys::duplicate(file)?)
        };
        // Afterwards: what was read belongs to these stamps.
        if sys::stamp_of_path(&path) != Some(stamp) || sys::stamp_of_file(file) != Some(stamp) {
            return Err(unfit());
        }
        let field = |name: &str| {
            let found = fields.iter().find(|(each, _)| each.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let head = |status: &str, is_left_out: &dyn Fn(&str) -> bool| {
            let mut head = format!("HTTP/1.1 {status}\r\n");
            for (name, value) in &fields {
                if !is_left_out(&name.to_ascii_lowercase()) {
                    let _ = write!(head, "{name}: {value}\r\n"); // a String takes everything
                }
            }
            head
        };
        Ok(CachedFile {
            whole: head("200 OK", &|_| false),
            not_modified: head("304 Not Modified", &|name| name.starts_with("content-")),
            partial: head("206 Partial Content", &|name| name == "content-length"),
            entity_tag: field("etag"),
            last_modified: field("last-modified"),
            checked_in: AtomicU32::new(0),
            path,
            folder,
            stamp,
            folder_stamp,
            bytes,
        })
    }

    /// True: neither the file nor its folder has changed. Checked once in each turn of the thread: its requests
    /// had come before it began, so a change that a client has made before its request is found. Turns begin
    /// with 1.
    pub fn is_current(&self, turn: u32) -> bool {
        // Relaxed: one thread uses it.
        if self.checked_in.load(Relaxed) == turn {
            return true;
        }
        let is_same = sys::stamp_of_path(&self.path) == Some(self.stamp)
            && sys::stamp_of_path(&self.folder) == Some(self.folder_stamp);
        if is_same {
            self.checked_in.store(turn, Relaxed);
        }
        is_same
    }

    /// The bytes, when they are in memory.
    pub fn memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Memory(bytes) => Some(bytes),
            Bytes::File(_) => None,
        }
    }

    /// The open file, when the bytes are not in memory.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.bytes {
            Bytes::Memory(_) => None,
            Bytes::File(file) => Some(file.as_fd()),
        }
    }

    /// `None`: the loop has to decide.
    pub fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        if request.if_none_match.is_some() || request.if_modified_since.is_some() {
            if !self.is_unchanged_for(request) {
                return None;
            }
            return Some(Answer { head: self.not_modified.clone(), start: 0, count: 0 });
        }
        let size = self.stamp.size;
        let Some(range) = request.range else {
            let count = if request.is_head { 0 } else { size };
            return Some(Answer { head: self.whole.clone(), start: 0, count });
        };
        let (start, end) = match range {
            Range::From(first, last) => (first, last.map_or(size, |last| last.saturating_add(1))),
            Range::Last(count) => (size.saturating_sub(count), size),
        };
        let end = end.min(size);
        if start >= end {
            return None;
        }
        let (count, last) = (end - start, end - 1);
        let fields =
            format!("Content-Range: bytes {start}-{last}/{size}\r\nContent-Length: {count}\r\n");
        Some(Answer { head: format!("{}{fields}", self.partial), start, count })
    }

    /// True: each condition names exactly this version. Lists, weak comparisons and older times are left to
    /// the loop.
    fn is_unchanged_for(&self, request: &Request<'_>) -> bool {
        let is_same = |given: Option<&[u8]>, own: &Option<String>| {
            given.is_none_or(|given| own.as_ref().is_some_and(|own| own.as_bytes() == given))
        };
        !request.reloads
            && is_same(request.if_none_match, &self.entity_tag)
            && is_same(request.if_modified_since, &self.last_modified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::parse;
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("manycore-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }

        /// Writes a file, and waits until it and the folder count as settled.
        fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, bytes).expect("written");
            make_old(&path);
            self.settle();
            path
        }

        fn settle(&self) {
            let changed = |path: &PathBuf| sys::stamp_of_path(path).expect("there").changed_ns();
            let files = fs::read_dir(&self.0).expect("a folder").flatten().map(|file| file.path());
            let last = files.map(|file| changed(&file)).max().unwrap_or(0).max(changed(&self.0));
            while sys::real_time_ns() - last < SETTLED_NS {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn make_old(path: &PathBuf) {
        let file = fs::File::options().write(true).open(path).expect("opened");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).expect("set");
    }

    fn cached(path: &PathBuf) -> Result<CachedFile> {
        let file = fs::File::open(path).expect("opened");
        let fields = [
            ("Accept-Ranges", "bytes"),
            ("Last-Modified", "then"),
            ("ETag", "\"1\""),
            ("Content-Type", "text/plain"),
            ("Content-Length", "5"),
        ];
        let fields = fields.map(|(name, value)| (name.into(), value.into())).into();
        CachedFile::new(FileSource { path: path.clone(), file: file.as_fd(), fields })
    }

    fn answer(file: &CachedFile, method: &str, fields: &str) -> Option<Answer> {
        let text = format!("{method} /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        file.answer(&parse(text.as_bytes()).expect("a plain request"))
    }

    #[test]
    fn answers_have_the_fields_of_their_kind() {
        let folder = Folder::new("answers");
        let file = cached(&folder.write("a", b"12345")).expect("cached");
        assert_eq!(file.memory(), Some(b"12345".as_slice()));
        let whole = answer(&file, "GET", "").expect("whole");
        assert!(whole.head.starts_with("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\n"));
        assert!(whole.head.ends_with("\r\nContent-Length: 5\r\n"));
        assert_eq!((whole.start, whole.count), (0, 5));
        let head = answer(&file, "HEAD", "").expect("its head");
        assert_eq!((&head.head, head.count), (&whole.head, 0));
        for (range, start, count, named) in [
            ("bytes=1-2", 1, 2, "bytes 1-2/5"),
            ("bytes=3-", 3, 2, "bytes 3-4/5"),
            ("bytes=3-99", 3, 2, "bytes 3-4/5"),
            ("bytes=-2", 3, 2, "bytes 3-4/5"),
            ("bytes=-99", 0, 5, "bytes 0-4/5"),
        ] {
            let part = answer(&file, "GET", &format!("Range: {range}\r\n")).expect(range);
            assert!(part.head.starts_with("HTTP/1.1 206 Partial Content\r\n"));
            let length = format!("Content-Range: {named}\r\nContent-Length: {count}\r\n");
            assert!(part.head.ends_with(&length), "{}", part.head);
            assert_eq!((part.start, part.count), (start, count));
        }
        for range in ["bytes=5-", "bytes=9-10", "bytes=3-2", "bytes=-0"] {
            assert_eq!(answer(&file, "GET", &format!("Range: {range}\r\n")), None);
        }
        for fields in [
            "If-None-Match: \"1\"\r\n",
            "If-Modified-Since: then\r\n",
            "If-None-Match: \"1\"\r\nIf-Modified-Since: then\r\n",
        ] {
            let same = answer(&file, "GET", fields).expect("not modified");
            assert!(same.head.starts_with("HTTP/1.1 304 Not Modified\r\n"));
            assert!(same.head.contains("ETag: \"1\"\r\n") && !same.head.contains("Content-"));
            assert_eq!(same.count, 0);
        }
        for fields in [
            "If-None-Match: \"2\"\r\n",
            "If-None-Match: W/\"1\"\r\n",
            "If-None-Match: \"1\", \"2\"\r\n",
            "If-None-Match: *\r\n",
            "If-None-Match: \"2\"\r\nIf-Modified-Since: then\r\n",
            "If-Modified-Since: later\r\n",
            "If-None-Match: \"1\"\r\nCache-Control: no-cache\r\n",
        ] {
            assert_eq!(answer(&file, "GET", fields), None, "{fields}");
        }
    }

    #[test]
    fn a_large_file_stays_a_file() {
        let folder = Folder::new("large");
        let file = cached(&folder.write("a", &vec![7; MAX_IN_MEMORY as usize + 1]));
        let file = file.expect("cached");
        assert!(file.memory().is_none() && file.file().is_some());
    }

    #[test]
    fn every_change_is_found() {
        let folder = Folder::new("changes");
        let path = folder.write("a", b"12345");
        let changes: [(&str, &dyn Fn()); 6] = [
            ("written", &|| fs::write(&path, b"54321").expect("written")),
            ("shorter", &|| fs::write(&path, b"1").expect("written")),
            ("replaced", &|| {
                fs::write(folder.0.join("new"), b"12345").expect("written");
                fs::rename(folder.0.join("new"), &path).expect("renamed");
            }),
            ("gone", &|| fs::remove_file(&path).expect("removed")),
            ("a variant", &|| fs::write(folder.0.join("a.br"), b"1").expect("written")),
            ("an old time", &|| {
                let file = fs::File::options().write(true).open(&path).expect("opened");
                file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
            }),
        ];
        for (name, change) in changes {
            let _ = fs::remove_file(folder.0.join("a.br"));
            folder.write("a", b"12345");
            let file = cached(&path).expect("cached");
            assert!(file.is_current(1), "{name}");
            change();
            assert!(file.is_current(1) && !file.is_current(2), "{name}");
        }
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_cached() {
        let folder = Folder::new("fresh");
        let path = folder.write("a", b"12345");
        fs::write(&path, b"54321").expect("written");
        folder.settle();
        assert!(cached(&path).is_err(), "its validators are weak");
        make_old(&path);
        assert!(cached(&path).is_err(), "it has just changed");
        folder.settle();
        assert!(cached(&path).is_ok());
        fs::write(folder.0.join("b"), b"1").expect("written");
        assert!(cached(&path).is_err(), "its folder has changed");
    }
}
