//! The event loop of the channels as an object of JavaScript: attaches and detaches ends, keeps the
//! loop alive, rings.

use crate::channel_end::{End, EndWords, PARENT_WORDS, WORKER_WORDS};
use crate::error::{Result, refused, to_js};
use crate::event_loop::{Bell, Shared};
use crate::segment::{NativeSegment, external_buffer};
use crate::uv::Uv;
use manycore_core::segment::Side;
use manycore_core::sys as core_sys;
use manycore_core::wake::doorbell::Doorbell;
use napi::JsValue;
use napi::bindgen_prelude::{Env, Function, Unknown};
use napi::sys;
use napi_derive::napi;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;
use std::sync::Arc;

/// Serves the channels in this thread's event loop. One for each environment.
#[napi]
pub struct NativeLoop {
    shared: Rc<Shared>,
}

#[napi]
impl NativeLoop {
    /// Calls `deliver` without arguments when any channel may have news.
    #[napi(constructor)]
    pub fn new(env: &Env, deliver: Function<'_, (), ()>) -> Result<NativeLoop> {
        let missing = || refused("this runtime does not export its event loop");
        let uv = Uv::find().ok_or_else(missing)?;
        let at = Uv::loop_of(env.raw()).ok_or_else(missing)?;
        let mut reference = null_mut();
        // SAFETY: `deliver` is a live value of this call.
        unsafe { sys::napi_create_reference(env.raw(), deliver.raw(), 1, &mut reference) };
        let shared = Shared::new(env.raw(), uv, at, reference);
        Ok(NativeLoop { shared })
    }

    /// The eventfd that peers ring when this loop sleeps; the loop's own, and open until
    /// `release_bell` and as long as an end uses it.
    #[napi]
    pub fn hold_bell(&self) -> Result<i32> {
        let bell = self.shared.own_bell()?;
        bell.user_count.set(bell.user_count.get() + 1);
        Ok(bell.doorbell.raw())
    }

    #[napi]
    pub fn release_bell(&self) {
        let bell = self.shared.own_bell.borrow().as_ref().map(Rc::clone);
        if let Some(bell) = bell {
            self.shared.leave_bell(&bell);
        }
    }

    /// Watches one end. `bell` is this side's eventfd (-1: the loop's own), `peer_bell` the peer's;
    /// both are taken over. Returns the number of the end.
    #[napi]
    pub fn attach(
        &self,
        segment: &NativeSegment,
        is_parent: bool,
        bell: i32,
        peer_bell: i32,
        may_spin: bool,
    ) -> Result<u32> {
        let peer_bell = Doorbell::from_fd(core_sys::adopt(peer_bell).map_err(to_js)?);
        let bell = if bell < 0 {
            self.shared.own_bell()?
        } else {
            let own = core_sys::adopt(bell).map_err(to_js)?;
            self.shared.new_bell(Doorbell::from_fd(own), None)?
        };
        Ok(self.add(segment, is_parent, (bell, peer_bell), may_spin, Arc::default()))
    }

    /// Watches one end whose bell is a stream, for both directions; it is taken over.
    #[napi]
    pub fn attach_stream(
        &self,
        segment: &NativeSegment,
        is_parent: bool,
        stream: i32,
        may_spin: bool,
    ) -> Result<u32> {
        let bell = Doorbell::of_stream(core_sys::adopt(stream).map_err(to_js)?);
        let peer_bell = Doorbell::of_stream(bell.duplicate().map_err(to_js)?);
        let own_words = Arc::<EndWords>::default();
        let bell = self.shared.new_bell(bell, Some(Arc::clone(&own_words)))?;
        Ok(self.add(segment, is_parent, (bell, peer_bell), may_spin, own_words))
    }

    fn add(
        &self,
        segment: &NativeSegment,
        is_parent: bool,
        (bell, peer_bell): (Rc<Bell>, Doorbell),
        may_spin: bool,
        own_words: Arc<EndWords>,
    ) -> u32 {
        bell.user_count.set(bell.user_count.get() + 1);
        let side = if is_parent { Side::Parent } else { Side::Worker };
        let end = End {
            segment: Arc::clone(&segment.segment),
            side,
            words: if is_parent { PARENT_WORDS } else { WORKER_WORDS },
            bell,
            peer_bell,
            may_spin,
            own_words,
            seen_state: 0,
            seen_bell: (0, 0),
            seen_out_tail: 0,
        };
        let index = {
            let mut ends = self.shared.ends.borrow_mut();
            let free = ends.iter().position(Option::is_none);
            let index = free.unwrap_or(ends.len());
            if index == ends.len() {
                ends.push(None);
            }
            ends[index] = Some(end);
            index
        };
        self.shared.update_hooks();
        index as u32
    }

    /// Removes an end and closes its descriptors. Unknown numbers are ignored.
    #[napi]
    pub fn detach(&self, end: u32) {
        self.shared.remove(end);
    }

    /// The words of `EndWords`. JavaScript writes the first: 1 keeps the event loop alive because answers
    /// are awaited, 0 does not.
    #[napi]
    pub fn end_words<'env>(&self, env: &'env Env, end: u32) -> Result<Unknown<'env>> {
        let ends = self.shared.ends.borrow();
        let Some(Some(end)) = ends.get(end as usize) else { return Err(refused("no such end")) };
        let words = Arc::clone(&end.own_words);
        external_buffer(env, NonNull::from(&*words).cast(), size_of::<EndWords>(), words)
    }

    /// Applies the words now: for a first word of 1 where the second is 0. A loop that nothing keeps
    /// alive does not reach the hook that applies them before its sleep.
    #[napi]
    pub fn settle_refs(&self) {
        self.shared.settle_refs();
    }

    /// Wakes the peer of an end.
    #[napi]
    pub fn ring(&self, end: u32) {
        if let Some(Some(end)) = self.shared.ends.borrow().get(end as usize) {
            end.peer_bell.ring();
        }
    }
}
