//! Caches of constructed objects that a program makes (`include/umem.h`).
//!
//! Invariant **Cache**: a cache that `umem_cache_create` gave is valid until
//! `umem_cache_destroy`, which its owner calls once.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};

use slab::{Construct, Geometry, LARGEST, Magazine, ObjectCache, Round};

use crate::api::insist;
use crate::depots::{Slabs, slab_bytes};
use crate::lock::Lock;
use crate::segment::WORDS;
use crate::stats::Made;
use crate::sys::set_errno;
use crate::{debug, map, meta, options, settings, storage};

/// log2 of the constructed objects that a cache keeps; without magazines it keeps one.
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
    /// What `umastat` reads.
    made: Made,
}

impl Cache {
    /// Notes what the cache has, after a change of it.
    fn note(&self, objects: &Objects) {
        let geometry = objects.geometry();
        self.made
            .note(geometry.object_bytes(), objects.stats(), geometry);
    }
}

struct Caches(Option<&'static Cache>);

// SAFETY: caches are reached through their locks.
unsafe impl Send for Caches {}

static CACHES: Lock<Caches> = Lock::new(Caches(None));

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

/// A cache of objects, or null with `EINVAL` or `ENOMEM`. Objects have at most 32 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn umem_cache_create(
    name: *const c_char,
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
    match create(geometry, functions, name_of(name)) {
        Some(cache) => cache,
        None => {
            set_errno(libc::ENOMEM);
            ptr::null()
        }
    }
}

fn name_of<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return b"?";
    }
    // SAFETY: the program gave a C string; it is copied before the call ends.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

fn ready_order() -> u32 {
    options::read();
    match settings::has_magazines() {
        true => READY_ORDER,
        false => 0,
    }
}

fn create(geometry: Geometry, functions: Functions, name: &[u8]) -> Option<&'static Cache> {
    let mut ready = Magazine::new();
    let order = ready_order();
    // SAFETY: the array is the magazine's until the cache is destroyed.
    unsafe { ready.lend(storage::get(order)?, 1 << order) };
    let objects = ObjectCache::new(geometry, ready, functions);
    let mut caches = CACHES.lock();
    for cache in caches.iter() {
        let mut place = cache.objects.lock();
        if place.is_none() {
            cache.made.begin(name);
            cache.note(place.insert(objects));
            return Some(cache);
        }
    }
    let place: NonNull<Cache> = meta::alloc(size_of::<Cache>())?.cast();
    let cache = Cache {
        objects: Lock::new(Some(objects)),
        next: caches.0,
        made: Made::new(),
    };
    // SAFETY: **Metadata**: the place is ours for good.
    let cache = unsafe {
        place.write(cache);
        place.as_ref()
    };
    caches.0 = Some(cache);
    cache.made.begin(name);
    cache.made.list();
    if let Some(objects) = &*cache.objects.lock() {
        cache.note(objects);
    }
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
        let Some(objects) = objects.as_mut() else {
            return ptr::null_mut();
        };
        let object = objects.alloc(&mut Slabs(map::NOTHING));
        cache.note(objects);
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
        debug::unknown_address(object.addr().get());
    }
    cache.note(objects);
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
        debug::unknown_address(ptr::from_ref(cache).addr());
    }
    cache.made.end();
    if let Some(array) = objects.into_storage() {
        storage::put(array, ready_order());
    }
}
