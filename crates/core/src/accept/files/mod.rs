//! Files that are answered without a loop. A thread of the process accepts the connections of a program that
//! serves folders, and peeks at each request (`request`). A plain one for a file in the cache (`file`) it
//! answers itself, by sendfile(2) or from memory. Every other request goes to a loop, which finds all of its
//! bytes unread: the loop's rules decide, about the request and about the connection.
//!
//! The cache is filled by the loops: what `serveStatic` has sent is what the thread sends from then on, as
//! long as file and folder have not changed. So there is one place with rules for paths, types and variants.
//! A loop gives a connection back once its answer is sent (`Files::take_back`). Design: nginx's
//! `open_file_cache`, without its time of trust.

mod connection;
mod file;
mod request;
mod thread;

pub use file::{CachedFile, FileSource};
pub use thread::{Files, start};
