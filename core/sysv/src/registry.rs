//! Numbers, keys and permissions.
//!
//! A number is a place in a table and how often the place was used before, so that a number that
//! was removed stays invalid for long.

use alloc::vec::Vec;

/// Places of a table at most; a number is `sequence * PLACES + place` (Linux's IPCMNI).
const PLACES: u32 = 32_768;
/// Sequences before they begin anew, so that a number fits in a C `int`.
const SEQUENCES: u32 = 65_536;
/// The key that names nothing (IPC_PRIVATE).
const PRIVATE: i32 = 0;
/// Bits of a mode that permit something.
const MODE_BITS: u16 = 0o777;

/// Why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// No object has this key.
    NotFound,
    /// The key is in use, and a new object was asked for.
    Exists,
    /// The object's mode does not permit it.
    Denied,
    /// Only the owner may do that.
    NotOwner,
    /// There are as many as there may be, or no memory for another.
    Full,
    /// No object has this number.
    NoSuchNumber,
    /// The object that had this number was removed.
    Removed,
}

/// Who asks.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Whether it is in a group.
    pub is_in_group: &'a dyn Fn(u32) -> bool,
    /// Modes do not bind it (CAP_IPC_OWNER).
    pub ignores_modes: bool,
    /// It may change and remove what others own (CAP_SYS_ADMIN).
    pub is_administrator: bool,
}

/// Whose an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The user who made it.
    pub creator_uid: u32,
    /// The group of who made it.
    pub creator_gid: u32,
    /// Permissions for user, group and others, as of a file.
    pub mode: u16,
}

impl Owner {
    fn new(caller: &Caller<'_>, mode: u16) -> Self {
        Self {
            uid: caller.uid,
            gid: caller.gid,
            creator_uid: caller.uid,
            creator_gid: caller.gid,
            mode: mode & MODE_BITS,
        }
    }

    /// Whether the caller may do all that `wanted` says: bits as for others (4 read, 2 write).
    pub fn permits(&self, caller: &Caller<'_>, wanted: u16) -> bool {
        let is_own = [self.uid, self.creator_uid].contains(&caller.uid);
        let groups = [self.gid, self.creator_gid];
        let granted = if is_own {
            self.mode >> 6
        } else if groups.iter().any(|group| (caller.is_in_group)(*group)) {
            self.mode >> 3
        } else {
            self.mode
        };
        wanted & !granted & 7 == 0 || caller.ignores_modes
    }

    /// Whether the caller may change or remove the object.
    pub fn is_owned_by(&self, caller: &Caller<'_>) -> bool {
        [self.uid, self.creator_uid].contains(&caller.uid) || caller.is_administrator
    }
}

/// What a caller of `*get` wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetRequest {
    /// The key; 0 for a new object without one.
    pub key: i32,
    /// Make the object if there is none.
    pub create: bool,
    /// It has to be new.
    pub exclusive: bool,
    /// Permissions of a new one, or those that are wanted of one that exists.
    pub mode: u16,
}

/// An object and what is known of it.
#[derive(Debug)]
pub struct Entry<T> {
    /// Its key; 0 if it has none.
    pub key: i32,
    /// How often its place was used before.
    pub sequence: u32,
    /// Whose it is.
    pub owner: Owner,
    /// It.
    pub object: T,
}

#[derive(Debug)]
struct Place<T> {
    sequence: u32,
    entry: Option<Entry<T>>,
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Registry<T> {
    places: Vec<Place<T>>,
    used: usize,
    limit: usize,
}

impl<T> Registry<T> {
    /// For at most `limit` objects, and no more than there are places.
    pub const fn new(limit: usize) -> Self {
        Self {
            places: Vec::new(),
            used: 0,
            limit: if limit < PLACES as usize {
                limit
            } else {
                PLACES as usize
            },
        }
    }

    /// Objects that exist.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The highest place in use, which tools count up to; 0 if there is none.
    pub fn highest(&self) -> usize {
        let used = self.places.iter().rposition(|place| place.entry.is_some());
        used.unwrap_or(0)
    }

    /// The number of the object that has `request.key`, if the caller may have what it wants of it;
    /// `None` if there is none and a new one shall be made ([`Registry::insert`]).
    pub fn find(&self, request: GetRequest, caller: &Caller<'_>) -> Result<Option<u32>, Error> {
        if request.key == PRIVATE {
            return Ok(None);
        }
        let found = self.iter().find(|(_, entry)| entry.key == request.key);
        match found {
            None if request.create => Ok(None),
            None => Err(Error::NotFound),
            Some(_) if request.create && request.exclusive => Err(Error::Exists),
            Some((number, entry)) => {
                let wanted = request.mode >> 6 | request.mode >> 3 | request.mode;
                let permits = entry.owner.permits(caller, wanted);
                permits.then_some(Some(number)).ok_or(Error::Denied)
            }
        }
    }

    /// Makes room for one more.
    pub fn reserve(&mut self) -> Result<(), Error> {
        if self.used >= self.limit {
            return Err(Error::Full);
        }
        self.places.try_reserve(1).map_err(|_| Error::Full)
    }

    /// Gives a new object a number.
    pub fn insert(
        &mut self,
        request: GetRequest,
        caller: &Caller<'_>,
        object: T,
    ) -> Result<u32, Error> {
        self.reserve()?;
        let free = self.places.iter().position(|place| place.entry.is_none());
        let index = free.unwrap_or(self.places.len());
        if index == self.places.len() {
            self.places.push(Place {
                sequence: 0,
                entry: None,
            });
        }
        let place = &mut self.places[index];
        place.entry = Some(Entry {
            key: request.key,
            sequence: place.sequence,
            owner: Owner::new(caller, request.mode),
            object,
        });
        self.used += 1;
        Ok(place.sequence * PLACES + index as u32)
    }

    /// The object with this number.
    pub fn get(&self, number: u32) -> Result<&Entry<T>, Error> {
        let place = self.places.get((number % PLACES) as usize);
        let entry = place.and_then(|place| place.entry.as_ref());
        let entry = entry.ok_or(Error::NoSuchNumber)?;
        match entry.sequence == number / PLACES {
            true => Ok(entry),
            false => Err(Error::Removed),
        }
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, number: u32) -> Result<&mut Entry<T>, Error> {
        self.get(number)?;
        let place = self.places.get_mut((number % PLACES) as usize);
        let entry = place.and_then(|place| place.entry.as_mut());
        entry.ok_or(Error::NoSuchNumber)
    }

    /// The object at a place, with its number.
    pub fn at(&self, place: usize) -> Option<(u32, &Entry<T>)> {
        let entry = self.places.get(place)?.entry.as_ref()?;
        Some((entry.sequence * PLACES + place as u32, entry))
    }

    /// Takes an object out; its number is not given again for long.
    pub fn remove(&mut self, number: u32) -> Result<Entry<T>, Error> {
        self.get(number)?;
        let place = &mut self.places[(number % PLACES) as usize];
        place.sequence = (place.sequence + 1) % SEQUENCES;
        self.used -= 1;
        place.entry.take().ok_or(Error::NoSuchNumber)
    }

    /// All objects with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry<T>)> {
        (0..self.places.len()).filter_map(|place| self.at(place))
    }
}
