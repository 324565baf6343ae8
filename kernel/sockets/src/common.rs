//! Options that mean the same in every family, and the waiting that some of them bound.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::{Duration, Instant};
use sync::{Error, Restart, Result, Wait};

use crate::limits;
use vfs::socket::{Blocking, OptionName, OptionValue};

/// A time limit of zero: none.
const NO_LIMIT: u64 = 0;

/// SO_LINGER is off.
const NO_LINGER: u32 = u32::MAX;

/// The flags by bit number in [`CommonOptions::flags`].
const FLAGS: [OptionName; 12] = [
    OptionName::Debug,
    OptionName::ReuseAddress,
    OptionName::ReusePort,
    OptionName::DontRoute,
    OptionName::Broadcast,
    OptionName::KeepAlive,
    OptionName::OutOfBandInline,
    OptionName::PassCredentials,
    OptionName::Timestamp,
    OptionName::TimestampNanos,
    OptionName::NoCheck,
    OptionName::ReceiveQueueOverflow,
];

/// Values that any thread may read or set at any time.
pub struct CommonOptions {
    flags: AtomicU32,
    /// Bytes that may be queued for sending.
    pub send_buffer: AtomicU32,
    /// Bytes that may be queued for receiving.
    pub receive_buffer: AtomicU32,
    send_limit_ns: AtomicU64,
    receive_limit_ns: AtomicU64,
    /// SO_PRIORITY and SO_MARK: kept for who asks.
    priority: AtomicU32,
    mark: AtomicU32,
    /// SO_RCVLOWAT: bytes for which a receiver of a stream waits.
    receive_low_water: AtomicU32,
    /// SO_LINGER, in seconds: kept for who asks, where nothing is left to wait for.
    linger_secs: AtomicU32,
    /// SO_COOKIE; zero until somebody asks.
    cookie: AtomicU64,
}

impl Default for CommonOptions {
    fn default() -> Self {
        Self {
            flags: AtomicU32::new(0),
            send_buffer: AtomicU32::new(limits::BUFFER_DEFAULT),
            receive_buffer: AtomicU32::new(limits::BUFFER_DEFAULT),
            send_limit_ns: AtomicU64::new(NO_LIMIT),
            receive_limit_ns: AtomicU64::new(NO_LIMIT),
            priority: AtomicU32::new(0),
            mark: AtomicU32::new(0),
            receive_low_water: AtomicU32::new(1),
            linger_secs: AtomicU32::new(NO_LINGER),
            cookie: AtomicU64::new(0),
        }
    }
}

fn flag_bit(name: OptionName) -> Option<u32> {
    FLAGS
        .iter()
        .position(|flag| *flag == name)
        .map(|index| 1 << index)
}

fn store_limit(place: &AtomicU64, value: OptionValue) -> Result<()> {
    let OptionValue::Timeout(limit) = value else {
        return Err(Error::Invalid);
    };
    let nanos = limit.map_or(NO_LIMIT, |limit| limit.as_nanos());
    place.store(nanos, Ordering::Relaxed);
    Ok(())
}

fn load_limit(place: &AtomicU64) -> Option<Duration> {
    match place.load(Ordering::Relaxed) {
        NO_LIMIT => None,
        nanos => Some(Duration::from_nanos(nanos)),
    }
}

fn store_buffer(place: &AtomicU32, name: OptionName, value: OptionValue) -> Result<()> {
    let bytes = limits::buffer(name, value.number()?).ok_or(Error::NoSuchOption)?;
    place.store(bytes, Ordering::Relaxed);
    Ok(())
}

impl CommonOptions {
    /// Whether the flag `name` is on; false if it is none of ours.
    pub fn is_set(&self, name: OptionName) -> bool {
        flag_bit(name).is_some_and(|bit| self.flags.load(Ordering::Relaxed) & bit != 0)
    }

    /// What a connection has of its listener: as in Linux all but the cookie and the priority.
    pub fn inherit(&self, listener: &Self) {
        let pairs = [
            (&self.flags, &listener.flags),
            (&self.send_buffer, &listener.send_buffer),
            (&self.receive_buffer, &listener.receive_buffer),
            (&self.mark, &listener.mark),
            (&self.receive_low_water, &listener.receive_low_water),
            (&self.linger_secs, &listener.linger_secs),
        ];
        for (ours, theirs) in pairs {
            ours.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let limits = [
            (&self.send_limit_ns, &listener.send_limit_ns),
            (&self.receive_limit_ns, &listener.receive_limit_ns),
        ];
        for (ours, theirs) in limits {
            ours.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The value of an option that all families share, or `None`.
    pub fn get(&self, name: OptionName) -> Option<OptionValue> {
        match name {
            OptionName::SendBuffer | OptionName::SendBufferForced => {
                Some(number(&self.send_buffer))
            }
            OptionName::ReceiveBuffer | OptionName::ReceiveBufferForced => {
                Some(number(&self.receive_buffer))
            }
            OptionName::Priority => Some(number(&self.priority)),
            OptionName::Mark => Some(number(&self.mark)),
            OptionName::ReceiveLowWater => Some(number(&self.receive_low_water)),
            OptionName::Linger => Some(self.linger()),
            OptionName::Cookie => Some(OptionValue::Cookie(self.cookie())),
            OptionName::SendTimeout => Some(OptionValue::Timeout(load_limit(&self.send_limit_ns))),
            OptionName::ReceiveTimeout => {
                Some(OptionValue::Timeout(load_limit(&self.receive_limit_ns)))
            }
            name => flag_bit(name).map(|_| self.is_set(name).into()),
        }
    }

    /// Sets an option that all families share; `None` if it is none of those.
    pub fn set(&self, name: OptionName, value: OptionValue) -> Option<Result<()>> {
        match name {
            OptionName::SendBuffer | OptionName::SendBufferForced => {
                Some(store_buffer(&self.send_buffer, name, value))
            }
            OptionName::ReceiveBuffer | OptionName::ReceiveBufferForced => {
                Some(store_buffer(&self.receive_buffer, name, value))
            }
            OptionName::Priority => Some(store_number(&self.priority, value)),
            OptionName::Mark => Some(store_number(&self.mark, value)),
            OptionName::ReceiveLowWater => Some(self.set_low_water(value)),
            OptionName::Linger => Some(self.set_linger(value)),
            OptionName::SendTimeout => Some(store_limit(&self.send_limit_ns, value)),
            OptionName::ReceiveTimeout => Some(store_limit(&self.receive_limit_ns, value)),
            name => flag_bit(name).map(|bit| self.set_flag(bit, value)),
        }
    }

    /// A number that no other socket has or will have.
    fn cookie(&self) -> u64 {
        /// The last number given, as no two sockets of the machine may have the same.
        static LAST: AtomicU64 = AtomicU64::new(0);
        match self.cookie.load(Ordering::Relaxed) {
            0 => {
                let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
                let cookie = &self.cookie;
                let set = cookie.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
                set.map_or_else(|old| old, |_| new)
            }
            old => old,
        }
    }

    fn set_flag(&self, bit: u32, value: OptionValue) -> Result<()> {
        if value.flag()? {
            self.flags.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!bit, Ordering::Relaxed);
        }
        Ok(())
    }

    fn linger(&self) -> OptionValue {
        let secs = self.linger_secs.load(Ordering::Relaxed);
        let is_on = secs != NO_LINGER;
        OptionValue::Linger(is_on.then(|| Duration::from_secs(secs.into())))
    }

    fn set_linger(&self, value: OptionValue) -> Result<()> {
        let OptionValue::Linger(wait) = value else {
            return Err(Error::Invalid);
        };
        let secs = wait.map_or(NO_LINGER, |wait| wait.as_secs() as u32);
        self.linger_secs.store(secs, Ordering::Relaxed);
        Ok(())
    }

    /// None is one, and a negative number is the largest, as in Linux.
    fn set_low_water(&self, value: OptionValue) -> Result<()> {
        let bytes = u32::try_from(value.number()?).unwrap_or(i32::MAX as u32);
        self.receive_low_water
            .store(bytes.max(1), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes for which a receiver waits that has room for so many.
    pub fn low_water(&self, room: usize) -> usize {
        room.min(self.receive_low_water.load(Ordering::Relaxed) as usize)
    }

    /// Bytes that may be queued for sending now.
    pub fn send_bytes(&self) -> u32 {
        self.send_buffer.load(Ordering::Relaxed)
    }

    /// Bytes that may be queued for receiving now.
    pub fn receive_bytes(&self) -> usize {
        self.receive_buffer.load(Ordering::Relaxed) as usize
    }

    /// How a sender waits now: with its time limit, if it may wait at all.
    pub fn send_wait(&self, blocking: Blocking) -> Option<Wait> {
        wait(load_limit(&self.send_limit_ns), blocking)
    }

    /// How a receiver waits now: with its time limit, if it may wait at all.
    pub fn receive_wait(&self, blocking: Blocking) -> Option<Wait> {
        wait(load_limit(&self.receive_limit_ns), blocking)
    }
}

fn store_number(place: &AtomicU32, value: OptionValue) -> Result<()> {
    place.store(value.number()?.cast_unsigned(), Ordering::Relaxed);
    Ok(())
}

fn number(place: &AtomicU32) -> OptionValue {
    OptionValue::Number(place.load(Ordering::Relaxed).cast_signed())
}

/// At its time limit a call ends as if it might not have waited (socket(7)), and with one it is
/// not restarted after a signal (signal(7)).
fn wait(limit: Option<Duration>, blocking: Blocking) -> Option<Wait> {
    match (blocking, limit) {
        (Blocking::Never, _) => None,
        (Blocking::MayWait, None) => Some(Wait::INTERRUPTIBLE),
        (Blocking::MayWait, Some(limit)) => {
            let deadline: Instant = mach::time::now() + limit;
            let how = Wait::INTERRUPTIBLE.until(deadline);
            Some(how.expire_as(Error::WouldBlock).restart(Restart::Never))
        }
    }
}
