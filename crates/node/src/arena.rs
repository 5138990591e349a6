//! Blocks for payloads as objects of JavaScript. `src/channels/shm/blocks.ts` decides which references
//! exist; here are copies, views and the one arena that a process shares.

use crate::collected::{Collected, Notice};
use crate::error::{Result, refused, to_js};
use crate::segment::external_buffer;
use crate::uncounted::uncounted_buffer;
use manycore_core::CoreError;
use manycore_core::arena::{Arena, MEMBER_OWNERS, MEMBERS_AT, OWNER_COUNT, OwnRange, Taken};
use manycore_core::owners::Owners;
use manycore_core::region::Mapping;
use napi::bindgen_prelude::{Env, Function, Unknown};
use napi::{JsValue, sys};
use napi_derive::napi;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An arena in which workers get their ranges: the own range, and the free owner numbers.
struct ParentArena {
    range: OwnRange,
    workers: Mutex<Owners>,
    /// First numbers of members, divided by `MEMBER_OWNERS`.
    members: Mutex<Owners>,
}

fn lock(owners: &Mutex<Owners>) -> MutexGuard<'_, Owners> {
    owners.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The arena of this process as a parent, for all its threads; dropped with the last of them.
static OF_PROCESS: Mutex<Weak<ParentArena>> = Mutex::new(Weak::new());

enum Role {
    Parent(Arc<ParentArena>),
    Worker(OwnRange),
}

#[napi]
pub struct NativeArena {
    role: Option<Role>,
    collected: Collected,
}

const CLOSED: CoreError = CoreError::Unsupported { what: "arena any more: it was released" };

#[napi]
impl NativeArena {
    /// The arena of this process as a parent; created at first use.
    #[napi(factory)]
    pub fn of_process(env: &Env, on_collected: Function<'_, (), ()>) -> Result<NativeArena> {
        let collected = Collected::new(env, &on_collected)?;
        let mut current = OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arena) = current.upgrade() {
            return Ok(NativeArena { role: Some(Role::Parent(arena)), collected });
        }
        let range = OwnRange::new(Arc::new(Arena::create().map_err(to_js)?), 0);
        let members = MEMBERS_AT / MEMBER_OWNERS..OWNER_COUNT / MEMBER_OWNERS;
        let arena = Arc::new(ParentArena {
            range,
            workers: Mutex::new(Owners::new(1..MEMBERS_AT)),
            members: Mutex::new(Owners::new(members)),
        });
        *current = Arc::downgrade(&arena);
        Ok(NativeArena { role: Some(Role::Parent(arena)), collected })
    }

    /// Opens the arena of another process in a member with numbers from `first` on; takes the
    /// descriptor over.
    #[napi(factory)]
    pub fn join(
        env: &Env,
        fd: i32,
        first: u32,
        on_collected: Function<'_, (), ()>,
    ) -> Result<NativeArena> {
        let fd = manycore_core::sys::adopt(fd).map_err(to_js)?;
        let owners = owners_of(first)?;
        let arena = Arc::new(Arena::open(fd).map_err(to_js)?);
        let collected = Collected::new(env, &on_collected)?;
        let role = Role::Parent(Arc::new(ParentArena {
            range: OwnRange::new(arena, first),
            workers: Mutex::new(Owners::new(first + 1..owners.end)),
            members: Mutex::new(Owners::new(0..0)),
        }));
        Ok(NativeArena { role: Some(role), collected })
    }

    /// Opens the parent's arena in a worker; takes the descriptor over.
    #[napi(factory)]
    pub fn open(
        env: &Env,
        fd: i32,
        owner: u32,
        on_collected: Function<'_, (), ()>,
    ) -> Result<NativeArena> {
        let fd = manycore_core::sys::adopt(fd).map_err(to_js)?;
        let arena = Arc::new(Arena::open(fd).map_err(to_js)?);
        let collected = Collected::new(env, &on_collected)?;
        Ok(NativeArena { role: Some(Role::Worker(OwnRange::new(arena, owner))), collected })
    }

    /// Takes the keys of views that were collected since the last call.
    #[napi]
    pub fn take_collected(&self) -> Vec<f64> {
        self.collected.take()
    }

    fn range(&self) -> Result<&OwnRange> {
        match &self.role {
            Some(Role::Parent(arena)) => Ok(&arena.range),
            Some(Role::Worker(range)) => Ok(range),
            None => Err(to_js(CLOSED)),
        }
    }

    /// The descriptor to pass to a worker; the arena's own.
    #[napi]
    pub fn fd(&self) -> Result<i32> {
        Ok(self.range()?.arena().raw())
    }

    fn parent(&self) -> Result<&ParentArena> {
        match &self.role {
            Some(Role::Parent(arena)) => Ok(arena),
            _ => Err(to_js(CLOSED)),
        }
    }

    /// Takes a number for a new worker.
    #[napi]
    pub fn take_owner(&self) -> Result<u32> {
        let taken = lock(&self.parent()?.workers).take();
        taken.ok_or_else(|| refused("no owner number is left in the arena"))
    }

    /// Frees the memory and the number of a dead worker, once no reference to its blocks is left.
    #[napi]
    pub fn retire_owner(&self, owner: u32) -> Result<()> {
        let parent = self.parent()?;
        parent.range.arena().retire(owner..owner + 1).map_err(to_js)?;
        lock(&parent.workers).release(owner);
        Ok(())
    }

    /// Takes the numbers for a new member and returns the first.
    #[napi]
    pub fn take_member(&self) -> Result<u32> {
        let parent = self.parent()?;
        let taken = lock(&parent.members).take();
        let number = taken.ok_or_else(|| refused("no numbers for one more loop are left"))?;
        let first = number * MEMBER_OWNERS;
        // Frees writes by a worker of the number's last member.
        parent.range.arena().retire(owners_of(first)?).map_err(to_js)?;
        Ok(first)
    }

    /// Frees the memory and the numbers of a dead member and its workers, once no reference to their
    /// blocks is left.
    #[napi]
    pub fn retire_member(&self, first: u32) -> Result<()> {
        let parent = self.parent()?;
        parent.range.arena().retire(owners_of(first)?).map_err(to_js)?;
        lock(&parent.members).release(first / MEMBER_OWNERS);
        Ok(())
    }

    /// Drops the mappings of a dead member; each stays only as long as a view needs it.
    #[napi]
    pub fn unmap_member(&self, first: u32) -> Result<()> {
        self.range()?.arena().unmap(owners_of(first)?);
        Ok(())
    }

    /// A block with a copy of `bytes`, a Uint8Array; its offset, or -1 when no memory is left.
    #[napi]
    pub fn place(&self, env: &Env, bytes: Unknown<'_>) -> Result<f64> {
        let (source, size_bytes) = bytes_of(env, &bytes)?;
        let Some(taken) = self.take(size_bytes as f64)? else { return Ok(-1.0) };
        // SAFETY: the source is a live typed array, the target a block of at least that size without
        // another user; `copy` because the source may lie in shared memory too.
        unsafe { std::ptr::copy(source, taken.view.start.as_ptr(), size_bytes) };
        Ok(taken.offset as f64)
    }

    /// A zeroed block; its offset, or -1 when no memory is left.
    #[napi]
    pub fn allocate(&self, size_bytes: f64) -> Result<f64> {
        let Some(taken) = self.take(size_bytes)? else { return Ok(-1.0) };
        let dirty_bytes = taken.dirty_bytes.min(size_bytes as u64) as usize;
        // SAFETY: these bytes lie in a block without another user yet.
        unsafe { taken.view.start.write_bytes(0, dirty_bytes) };
        Ok(taken.offset as f64)
    }

    fn take(&self, size_bytes: f64) -> Result<Option<Taken>> {
        match self.range()?.take(whole(size_bytes)?) {
            Ok(taken) => Ok(Some(taken)),
            Err(CoreError::Full { .. } | CoreError::Refused { .. }) => Ok(None),
            Err(error) => Err(to_js(error)),
        }
    }

    /// Frees a block of this owner.
    #[napi]
    pub fn free(&self, offset: f64) -> Result<()> {
        self.range()?.free(whole(offset)?).map_err(to_js)
    }

    /// The memory of a block of any owner; it stays mapped as long as the buffer is reachable. V8 counts
    /// its bytes if `is_counted`, or where no others can be made.
    #[napi]
    pub fn view<'env>(
        &self,
        env: &'env Env,
        owner: u32,
        offset: f64,
        size_bytes: f64,
        is_counted: bool,
        collected_key: Option<f64>,
    ) -> Result<Unknown<'env>> {
        let size_bytes = whole(size_bytes)?;
        let arena = self.range()?.arena();
        let view = arena.view(owner, whole(offset)?, size_bytes).map_err(to_js)?;
        let notice = collected_key.map(|key| self.collected.notice(key));
        let bytes = (!is_counted && notice.is_some()).then(|| Outstanding::new(size_bytes));
        let mut kept: Box<dyn Send> =
            Box::new(Kept { _mapping: view.mapping, _bytes: bytes, _notice: notice });
        let size_bytes = size_bytes as usize;
        if !is_counted {
            // SAFETY: the mapping has these bytes, and `kept` holds it.
            match unsafe { uncounted_buffer(env, view.start, size_bytes, kept) } {
                Ok(made) => return made,
                Err(back) => kept = back,
            }
        }
        external_buffer(env, view.start, size_bytes, kept)
    }

    /// Number of this owner's blocks in use.
    #[napi(getter)]
    pub fn used_count(&self) -> u32 {
        self.range().map_or(0, |range| range.used_count() as u32)
    }

    /// Releases the arena: only existing views work afterwards.
    #[napi]
    pub fn release(&mut self) {
        self.role = None;
        self.collected.close();
    }
}

/// Values that live as long as a view; dropped in this order.
struct Kept {
    _mapping: Arc<Mapping>,
    _bytes: Option<Outstanding>,
    _notice: Option<Notice>,
}

thread_local! {
    /// Bytes of the views that this thread made, uncounted and with a key, and that are not collected yet.
    static OUTSTANDING: Arc<AtomicU64> = Arc::default();
}

/// Bytes of one view within those of its thread.
struct Outstanding {
    total: Arc<AtomicU64>,
    size_bytes: u64,
}

impl Outstanding {
    fn new(size_bytes: u64) -> Outstanding {
        let total = OUTSTANDING.with(Arc::clone);
        total.fetch_add(size_bytes, Ordering::Relaxed);
        Outstanding { total, size_bytes }
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

/// Bytes of blocks that this thread received, that V8 does not count, and that are not collected yet.
#[napi]
pub fn outstanding_bytes() -> f64 {
    OUTSTANDING.with(|total| total.load(Ordering::Relaxed)) as f64
}

/// The numbers of a member.
fn owners_of(first: u32) -> Result<Range<u32>> {
    if !(MEMBERS_AT..OWNER_COUNT).contains(&first) || !first.is_multiple_of(MEMBER_OWNERS) {
        return Err(to_js(CoreError::Corrupt {
            what: "the number of a loop",
            value: first.into(),
        }));
    }
    Ok(first..first + MEMBER_OWNERS)
}

fn whole(number: f64) -> Result<u64> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if (0.0..LARGEST).contains(&number) && number.fract() == 0.0 {
        return Ok(number as u64);
    }
    Err(to_js(CoreError::Corrupt { what: "a size or offset", value: number.to_bits() }))
}

/// Address and length of a typed array, without making a slice of it: it may be shared memory.
fn bytes_of(env: &Env, value: &Unknown<'_>) -> Result<(*const u8, usize)> {
    let mut length = 0;
    let mut data = null_mut();
    let mut kind = 0;
    // SAFETY: on the thread of `env`; `value` is a live value; live out-parameters.
    let status = unsafe {
        sys::napi_get_typedarray_info(
            env.raw(),
            value.raw(),
            &mut kind,
            &mut length,
            &mut data,
            null_mut(),
            null_mut(),
        )
    };
    let is_bytes = kind == sys::TypedarrayType::uint8_array;
    if status != sys::Status::napi_ok || !is_bytes {
        return Err(refused("only a Uint8Array can be placed in shared memory"));
    }
    // An empty array may have no address; the copy of 0 bytes needs one that is not null.
    let start = NonNull::new(data.cast::<u8>()).unwrap_or(NonNull::dangling());
    Ok((start.as_ptr(), length))
}
