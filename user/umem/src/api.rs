//! libumem's own interface: sized memory, and caches of constructed objects
//! (`include/umem.h`).
//!
//! Invariant **Cache**: a cache that `umem_cache_create` gave is valid until
//! `umem_cache_destroy`, which its owner calls once.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use slab::{Construct, Geometry, LARGEST, Magazine, ObjectCache, Round};

use crate::depots::{Slabs, slab_bytes};
use crate::lock::Lock;
use crate::segment::WORDS;
use crate::sys::set_errno;
use crate::{abi, map, meta, report, storage};

const NOFAIL: c_int = 0x100;
/// In a callback's answer: end with the status in the low byte.
const EXIT: c_int = 0x100;
/// The status without a callback.
const EXIT_STATUS: c_int = 255;
/// log2 of the constructed objects that a cache keeps.
const READY_ORDER: u32 = 7;

type Constructor = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int;
type Destructor = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The program's functions for the objects of a cache.
struct Functions {
    constructor: Option<Constructor>,
    destructor: Option<Destructor>,
    context: *mut c_void,
}

impl Construct for Functions {
    fn construct(&mut self, object: Round) -> bool {
        let memory = object.as_ptr().cast();
        // SAFETY: the program gave the function for objects like this one.
        self.constructor
            .is_none_or(|call| unsafe { call(memory, self.context, 0) } == 0)
    }

    fn destruct(&mut self, object: Round) {
        if let Some(call) = self.destructor {
            // SAFETY: as in `construct`.
            unsafe { call(object.as_ptr().cast(), self.context) };
        }
    }
}

type Objects = ObjectCache<WORDS, Functions>;

/// What a program holds as `umem_cache_t`.
pub struct Cache {
    /// Empty while the cache waits to be created again.
    objects: Lock<Option<Objects>>,
    next: Option<&'static Cache>,
}

struct Caches(Option<&'static Cache>);

// SAFETY: caches are reached through their locks.
unsafe impl Send for Caches {}

static CACHES: Lock<Caches> = Lock::new(Caches(None));
static CALLBACK: AtomicUsize = AtomicUsize::new(0);

impl Caches {
    fn iter(&self) -> impl Iterator<Item = &'static Cache> {
        core::iter::successors(self.0, |cache| cache.next)
    }
}

/// For `fork`.
pub fn acquire() {
    CACHES.acquire();
    // SAFETY: the lock is held, without a guard.
    unsafe { CACHES.held() }
        .iter()
        .for_each(|cache| cache.objects.acquire());
}

/// For `fork`.
pub fn release() {
    // SAFETY: as in `acquire`.
    unsafe { CACHES.held() }
        .iter()
        .for_each(|cache| cache.objects.release());
    CACHES.release();
}

/// Asks again until there is memory, if the program said that it cannot do without.
fn insist(flags: c_int, mut allocate: impl FnMut() -> *mut u8) -> *mut c_void {
    loop {
        let memory = allocate();
        if !memory.is_null() || flags & NOFAIL == 0 {
            return memory.cast();
        }
        let answer = match CALLBACK.load(Relaxed) {
            0 => EXIT | EXIT_STATUS,
            // SAFETY: `umem_nofail_callback` stored a function of this type.
            call => unsafe { core::mem::transmute::<usize, extern "C" fn() -> c_int>(call)() },
        };
        if answer & EXIT != 0 {
            // SAFETY: ends the process.
            unsafe { libc::exit(answer & 0xff) };
        }
    }
}

/// Memory for `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn umem_alloc(size: usize, flags: c_int) -> *mut c_void {
    insist(flags, || abi::allocate(size))
}

/// Memory for `size` bytes, all zeros.
#[unsafe(no_mangle)]
pub extern "C" fn umem_zalloc(size: usize, flags: c_int) -> *mut c_void {
    insist(flags, || abi::calloc(1, size).cast())
}

/// Frees what `umem_alloc` gave for `size`.
///
/// # Safety
/// Nobody uses `memory` any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umem_free(memory: *mut c_void, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { abi::release(memory.cast()) };
}

/// What to do when memory that must not fail fails.
#[unsafe(no_mangle)]
pub extern "C" fn umem_nofail_callback(callback: Option<extern "C" fn() -> c_int>) {
    CALLBACK.store(callback.map_or(0, |call| call as usize), Relaxed);
}

/// A cache of objects, or null with `EINVAL` or `ENOMEM`. Objects have at most 32 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn umem_cache_create(
    _name: *const c_char,
    size: usize,
    align: usize,
    constructor: Option<Constructor>,
    destructor: Option<Destructor>,
    _reclaim: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    _source: *mut c_void,
    _flags: c_int,
) -> *const Cache {
    let align = align.max(16);
    if !align.is_power_of_two() || align > 4096 || size == 0 || size > LARGEST {
        set_errno(libc::EINVAL);
        return ptr::null();
    }
    let object_bytes = size.next_multiple_of(align);
    let geometry = Geometry::new(object_bytes, slab_bytes(object_bytes), 0);
    let functions = Functions {
        constructor,
        destructor,
        context,
    };
    match create(geometry, functions) {
        Some(cache) => cache,
        None => {
            set_errno(libc::ENOMEM);
            ptr::null()
        }
    }
}

fn create(geometry: Geometry, functions: Functions) -> Option<&'static Cache> {
    let mut ready = Magazine::new();
    // SAFETY: the array is the magazine's until the cache is destroyed.
    unsafe { ready.lend(storage::get(READY_ORDER)?, 1 << READY_ORDER) };
    let objects = ObjectCache::new(geometry, ready, functions);
    let mut caches = CACHES.lock();
    for cache in caches.iter() {
        let mut place = cache.objects.lock();
        if place.is_none() {
            *place = Some(objects);
            return Some(cache);
        }
    }
    let place: NonNull<Cache> = meta::alloc(size_of::<Cache>())?.cast();
    let cache = Cache {
        objects: Lock::new(Some(objects)),
        next: caches.0,
    };
    // SAFETY: **Metadata**: the place is ours for good.
    let cache = unsafe {
        place.write(cache);
        place.as_ref()
    };
    caches.0 = Some(cache);
    Some(cache)
}

/// A constructed object.
///
/// # Safety
/// **Cache**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umem_cache_alloc(cache: *const Cache, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    let cache = unsafe { &*cache };
    insist(flags, || {
        let mut objects = cache.objects.lock();
        let object = objects
            .as_mut()
            .and_then(|objects| objects.alloc(&mut Slabs(map::NOTHING)));
        object.map_or(ptr::null_mut(), NonNull::as_ptr)
    })
}

/// Takes back an object in its constructed state.
///
/// # Safety
/// **Cache**; the object came from it and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umem_cache_free(cache: *const Cache, object: *mut c_void) {
    // SAFETY: the caller's promise.
    let cache = unsafe { &*cache };
    let (Some(object), Some(objects)) = (NonNull::new(object), &mut *cache.objects.lock()) else {
        return;
    };
    if objects
        .free(object.cast(), &mut Slabs(map::NOTHING))
        .is_err()
    {
        report::unknown_address(object.addr().get());
    }
}

/// Destructs what is free and ends the cache. Objects in use stay where they are.
///
/// # Safety
/// **Cache**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umem_cache_destroy(cache: *const Cache) {
    // SAFETY: the caller's promise.
    let cache = unsafe { &*cache };
    let Some(mut objects) = cache.objects.lock().take() else {
        return;
    };
    if objects.purge(&mut Slabs(map::NOTHING)).is_err() {
        report::unknown_address(ptr::from_ref(cache).addr());
    }
    if let Some(array) = objects.into_storage() {
        storage::put(array, READY_ORDER);
    }
}
