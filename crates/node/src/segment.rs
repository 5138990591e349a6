//! A mapped segment as an object of JavaScript: its bytes as an external ArrayBuffer.

use crate::error::{Result, refused, to_js};
use manycore_core::CoreError;
use manycore_core::layout::{HEADER_BYTES, word};
use manycore_core::region::Region;
use manycore_core::ring::frame::Head;
use manycore_core::ring::spsc::{PushError, Reader, Writer};
use manycore_core::segment::{Segment, Side};
use napi::bindgen_prelude::{Buffer, Env, FromNapiValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

#[napi]
pub struct NativeSegment {
    pub(crate) segment: Arc<Segment>,
}

#[napi]
impl NativeSegment {
    /// Maps the segment behind `fd` and closes `fd`.
    #[napi(factory)]
    pub fn open(fd: i32) -> Result<NativeSegment> {
        let fd = manycore_core::sys::adopt(fd).map_err(to_js)?;
        let segment = Segment::open(fd.as_fd()).map_err(to_js)?;
        Ok(NativeSegment { segment: Arc::new(segment) })
    }

    /// Maps the segment behind `fd` in a guest, and closes `fd`.
    #[napi(factory)]
    pub fn open_in_guest(fd: i32, size_bytes: u32) -> Result<NativeSegment> {
        let fd = manycore_core::sys::adopt(fd).map_err(to_js)?;
        let segment = Segment::open_in_guest(fd.as_fd(), size_bytes.into()).map_err(to_js)?;
        Ok(NativeSegment { segment: Arc::new(segment) })
    }

    /// Size of the whole segment.
    #[napi(getter)]
    pub fn size_bytes(&self) -> u32 {
        self.segment.mapping().size_bytes() as u32
    }

    #[napi(getter)]
    pub fn ring_bytes(&self) -> u32 {
        self.segment.shape().ring_bytes
    }

    #[napi(getter)]
    pub fn slot_count(&self) -> u32 {
        self.segment.shape().slot_count
    }

    #[napi(getter)]
    pub fn owner(&self) -> u32 {
        self.segment.shape().owner
    }

    #[napi(getter)]
    pub fn parent_owner(&self) -> u32 {
        self.segment.shape().parent_owner
    }

    #[napi(getter)]
    pub fn request_at(&self) -> u32 {
        self.segment.shape().request_at() as u32
    }

    #[napi(getter)]
    pub fn reply_at(&self) -> u32 {
        self.segment.shape().reply_at() as u32
    }

    /// The whole segment; it stays mapped as long as the buffer is reachable.
    #[napi]
    pub fn buffer<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        let start = self.segment.mapping().start();
        let size_bytes = self.segment.mapping().size_bytes();
        external_buffer(env, start, size_bytes, Arc::clone(&self.segment))
    }
}

/// A frame that Rust read.
#[napi(object)]
pub struct NativeFrame {
    pub kind: i32,
    pub task: i32,
    pub target: i32,
    pub body: Buffer,
    pub is_spilled: bool,
}

/// Rust's implementation of the ring, so that tests can compare the bytes of both languages. The caller
/// is the only writer, or reader, of the ring meanwhile.
#[napi]
impl NativeSegment {
    /// Writes one frame as `isParent`; false when the ring has no room.
    #[napi]
    pub fn try_push(
        &self,
        is_parent: bool,
        kind: i32,
        task: i32,
        target: i32,
        body: Buffer,
    ) -> Result<bool> {
        let place = self.segment.outgoing(side_of(is_parent));
        let mut writer = Writer::new(self.segment.mapping(), place);
        match writer.try_push(Head { kind, task, target }, &body) {
            Ok(()) => Ok(true),
            Err(PushError::Full) => Ok(false),
            Err(PushError::TooLarge) => Err(refused("the frame is larger than the ring takes")),
            Err(PushError::Corrupt { head }) => Err(corrupt("the head of the ring", head)),
        }
    }

    /// Reads one frame as `isParent`; `null` when the ring is empty.
    #[napi]
    pub fn try_pop(&self, is_parent: bool) -> Result<Option<NativeFrame>> {
        let place = self.segment.incoming(side_of(is_parent));
        let mut reader = Reader::new(self.segment.mapping(), place);
        let mut body = Vec::new();
        let popped = reader
            .try_pop(&mut body)
            .map_err(|found| corrupt("a cursor or size of the ring", found.value))?;
        Ok(popped.map(|(Head { kind, task, target }, is_spilled)| NativeFrame {
            kind,
            task,
            target,
            body: body.into(),
            is_spilled,
        }))
    }
}

fn side_of(is_parent: bool) -> Side {
    if is_parent { Side::Parent } else { Side::Worker }
}

fn corrupt(what: &'static str, value: u32) -> napi::Error<String> {
    to_js(CoreError::Corrupt { what, value: value.into() })
}

/// The byte offsets of the words for JavaScript, in the order of `wordAt` in `layout.ts`.
#[napi]
pub fn layout_offsets() -> Vec<u32> {
    let offsets = [
        word::REQUEST_TAIL,
        word::REQUEST_HEAD,
        word::REPLY_TAIL,
        word::REPLY_HEAD,
        word::PARENT_ASLEEP,
        word::WORKER_ASLEEP,
        word::PARENT_STATE,
        word::WORKER_STATE,
        word::REQUEST_ROOM,
        word::REPLY_ROOM,
        HEADER_BYTES,
    ];
    offsets.iter().map(|&offset| offset as u32).collect()
}

/// `[start, start + size)` as an ArrayBuffer, whose bytes V8 counts as memory that its collections free.
/// `keep` is dropped when it was collected.
pub fn external_buffer<'env, T>(
    env: &'env Env,
    start: NonNull<u8>,
    size_bytes: usize,
    keep: T,
) -> Result<Unknown<'env>> {
    let hint = Box::into_raw(Box::new(keep));
    let mut made: sys::napi_value = null_mut();
    let data = start.as_ptr().cast();
    // SAFETY: on the thread of `env`; the memory lives as long as `hint`, which the finalizer drops.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env.raw(),
            data,
            size_bytes,
            Some(drop_kept::<T>),
            hint.cast(),
            &mut made,
        )
    };
    if status != sys::Status::napi_ok {
        // SAFETY: from `Box::into_raw` above; the finalizer will not run.
        drop(unsafe { Box::from_raw(hint) });
        return Err(refused("this runtime allows no buffers over shared memory"));
    }
    // SAFETY: `made` is a live value of this scope.
    unsafe { Unknown::from_napi_value(env.raw(), made) }
        .map_err(|error| refused(&error.to_string()))
}

unsafe extern "C" fn drop_kept<T>(_env: sys::napi_env, _data: *mut c_void, hint: *mut c_void) {
    // SAFETY: `hint` is from `Box::into_raw` in `external_buffer`; a finalizer runs once.
    drop(unsafe { Box::from_raw(hint.cast::<T>()) });
}
