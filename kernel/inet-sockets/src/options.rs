//! Options of internet sockets: which the stack has, which are only remembered.

use base::Duration;
use inet::{Options, PathDiscovery, Transport};
use sync::{Error, Result};

use super::bound_device;
use super::handle::Handle;
use sockets::limits;
use vfs::socket::{Family, OptionName, OptionValue};

/// Reads an option that TCP and UDP share.
pub(crate) fn get(handle: &Handle, name: OptionName) -> Result<OptionValue> {
    if name.is_of_v6() && handle.family != Family::Inet6 {
        return Err(Error::NoSuchOption);
    }
    if let Some(value) = bound_device::get(&handle.stack, bound_device::of(handle), name) {
        return Ok(value);
    }
    let options = handle.options()?;
    if let Some(value) = from_stack(handle, &options, name) {
        return Ok(value);
    }
    match name {
        OptionName::Error => Ok(OptionValue::PendingError(handle.take_error())),
        name if is_accepted(name) => Ok(OptionValue::Number(0)),
        name => handle.common.get(name).ok_or(Error::NoSuchOption),
    }
}

fn from_stack(handle: &Handle, options: &Options, name: OptionName) -> Option<OptionValue> {
    let number = |value: u32| {
        Some(OptionValue::Number(
            i32::try_from(value).unwrap_or(i32::MAX),
        ))
    };
    match name {
        OptionName::ReuseAddress => Some(options.reuse_address.into()),
        OptionName::ReusePort => Some(options.reuse_port.into()),
        OptionName::Broadcast => Some(options.broadcast.into()),
        OptionName::KeepAlive => Some(options.keepalive.into()),
        OptionName::NoDelay => Some(options.no_delay.into()),
        OptionName::Cork => Some(options.cork.into()),
        OptionName::SendBuffer => number(options.send_buffer),
        OptionName::ReceiveBuffer => number(options.recv_buffer),
        OptionName::TimeToLive | OptionName::V6HopLimit => number(options.ttl.into()),
        OptionName::MulticastTimeToLive | OptionName::V6MulticastHops => {
            number(options.multicast_ttl.into())
        }
        OptionName::MulticastLoop | OptionName::V6MulticastLoop => {
            Some(options.multicast_loop.into())
        }
        OptionName::V6Only => Some(options.v6_only.into()),
        OptionName::V6DontFragment => Some(options.is_whole_v6.into()),
        OptionName::ReceiveErrors => Some(options.queue_failures_v4.into()),
        OptionName::V6ReceiveErrors => Some(options.queue_failures_v6.into()),
        OptionName::MtuDiscovery | OptionName::V6MtuDiscovery => {
            let mode = PMTU_MODES
                .iter()
                .position(|mode| *mode == options.path_discovery)?;
            number(mode as u32)
        }
        OptionName::MinTimeToLive => number(options.min_ttl.into()),
        OptionName::V6MinHopCount => number(options.min_hop_count.into()),
        OptionName::TypeOfService | OptionName::V6TrafficClass => number(options.tos.into()),
        OptionName::KeepIdle => number(options.keep_idle_secs.into()),
        OptionName::KeepInterval => number(options.keep_interval_secs.into()),
        OptionName::KeepCount => number(options.keep_count.into()),
        OptionName::UserTimeout => number(options.user_timeout_ms),
        OptionName::SynCount => number(match options.syn_timeouts {
            0 => handle.stack.settings().retry_limits.syn_timeouts.into(),
            own => own.into(),
        }),
        OptionName::DeferAccept => number(pauses_secs(options.defer_timeouts)),
        OptionName::WindowClamp => number(options.window_clamp),
        OptionName::ReceiveLowWater if handle.transport == Transport::Tcp => {
            number(options.receive_low_water)
        }
        OptionName::Linger => {
            let wait = options
                .linger_secs
                .map(|secs| Duration::from_secs(secs.into()));
            Some(OptionValue::Linger(wait))
        }
        _ => None,
    }
}

/// Options without an effect here that are safe to accept: they tune what we do anyway or
/// what a single network card does not have.
pub(crate) fn is_accepted(name: OptionName) -> bool {
    matches!(
        name,
        OptionName::QuickAck
            | OptionName::FastOpen
            | OptionName::FinTimeout
            | OptionName::NotSentLowWater
            | OptionName::BusyPoll
            | OptionName::IncomingCpu
            | OptionName::PacketInfo
            | OptionName::V6PacketInfo
            | OptionName::ReceiveErrors
            | OptionName::V6ReceiveErrors
            | OptionName::FreeBind
            | OptionName::BindAddressNoPort
    )
}

/// A number of seconds or tries from 1 to what fits.
fn positive<T: TryFrom<i32>>(value: OptionValue) -> Result<T> {
    let number = value.number()?;
    T::try_from(number)
        .ok()
        .filter(|_| number > 0)
        .ok_or(Error::Invalid)
}

fn byte(value: OptionValue) -> Result<u8> {
    u8::try_from(value.number()?).map_err(|_| Error::Invalid)
}

/// By Linux's numbers (IP_PMTUDISC_*).
const PMTU_MODES: [PathDiscovery; 6] = [
    PathDiscovery::Never,
    PathDiscovery::Want,
    PathDiscovery::Always,
    PathDiscovery::Probe,
    PathDiscovery::Interface,
    PathDiscovery::Omit,
];

fn path_discovery(value: OptionValue) -> Result<PathDiscovery> {
    let number = usize::try_from(value.number()?).ok();
    let mode = number.and_then(|number| PMTU_MODES.get(number));
    mode.copied().ok_or(Error::Invalid)
}

/// Hops, or -1 for the default.
fn hops(value: OptionValue, default: u8) -> Result<u32> {
    match value.number()? {
        -1 => Ok(default.into()),
        number => u8::try_from(number)
            .map(u32::from)
            .map_err(|_| Error::Invalid),
    }
}

/// Sets an option that TCP and UDP share.
///
/// Errors: `NoSuchOption` for options of IPv6 on other sockets, `Invalid` for a wrong value.
pub(crate) fn set(handle: &Handle, name: OptionName, value: OptionValue) -> Result<()> {
    if name.is_of_v6() && handle.family != Family::Inet6 {
        return Err(Error::NoSuchOption);
    }
    // What the socket has been bound to is decided.
    if name == OptionName::V6Only && handle.local()?.port != 0 {
        return Err(Error::Invalid);
    }
    let is_stream = handle.transport == Transport::Tcp;
    if is_stream && name == OptionName::MulticastTimeToLive {
        return Err(Error::Invalid);
    }
    if let Some(number) = bound_device::named(&handle.stack, name, value) {
        return bound_device::bind(handle, number?);
    }
    if is_stream && name == OptionName::ReceiveLowWater {
        return set_low_water(handle, value);
    }
    if let Some(change) = to_stack(handle, name, value)? {
        return handle.configure(|options| {
            change.apply(options);
            if is_stream {
                options.tos &= !ECN_BITS;
            }
        });
    }
    match name {
        name if is_accepted(name) => value.number().map(drop),
        name => handle
            .common
            .set(name, value)
            .unwrap_or(Err(Error::NoSuchOption)),
    }
}

/// The stack says how much it can be, and what is readable; calls that receive look at what is noted here.
fn set_low_water(handle: &Handle, value: OptionValue) -> Result<()> {
    // A negative number is the largest, as in Linux.
    let wanted = u32::try_from(value.number()?).unwrap_or(i32::MAX as u32);
    handle.configure(|options| options.receive_low_water = wanted)?;
    let made = handle.options()?.receive_low_water.cast_signed();
    let noted = handle
        .common
        .set(OptionName::ReceiveLowWater, OptionValue::Number(made));
    noted.unwrap_or(Err(Error::NoSuchOption))
}

/// A checked change of the stack's options.
#[derive(Clone, Copy)]
enum Change {
    Flag(OptionName, bool),
    Number(OptionName, u32),
    Linger(Option<u16>),
    PathDiscovery(PathDiscovery),
}

fn to_stack(handle: &Handle, name: OptionName, value: OptionValue) -> Result<Option<Change>> {
    use OptionName as N;
    Ok(Some(match name {
        N::ReuseAddress
        | N::ReusePort
        | N::Broadcast
        | N::KeepAlive
        | N::NoDelay
        | N::Cork
        | N::ReceiveErrors
        | N::V6ReceiveErrors
        | N::V6DontFragment
        | N::V6Only => Change::Flag(name, value.flag()?),
        N::MulticastLoop | N::V6MulticastLoop => Change::Flag(N::MulticastLoop, value.flag()?),
        N::MtuDiscovery | N::V6MtuDiscovery => Change::PathDiscovery(path_discovery(value)?),
        N::V6Mtu => Change::Number(name, packet_bytes(value)?),
        N::MinTimeToLive | N::V6MinHopCount => Change::Number(name, byte(value)?.into()),
        N::MulticastTimeToLive | N::V6MulticastHops => {
            Change::Number(N::MulticastTimeToLive, hops(value, 1)?)
        }
        N::SendBuffer | N::SendBufferForced => {
            Change::Number(N::SendBuffer, buffer_bytes(name, value)?)
        }
        N::ReceiveBuffer | N::ReceiveBufferForced => {
            Change::Number(N::ReceiveBuffer, buffer_bytes(name, value)?)
        }
        N::TimeToLive => match hops(value, handle.stack.settings().hop_limit)? {
            0 => return Err(Error::Invalid),
            hops => Change::Number(N::TimeToLive, hops),
        },
        N::V6HopLimit => Change::Number(
            N::TimeToLive,
            hops(value, handle.stack.settings().hop_limit_v6)?,
        ),
        // Linux takes the low byte of any number.
        N::TypeOfService => Change::Number(name, (value.number()? & 0xff).cast_unsigned()),
        N::V6TrafficClass => Change::Number(N::TypeOfService, hops(value, 0)?),
        N::KeepIdle | N::KeepInterval => Change::Number(name, positive::<u16>(value)?.into()),
        N::KeepCount => Change::Number(name, positive::<u8>(value)?.into()),
        N::UserTimeout => {
            let millis = u32::try_from(value.number()?).map_err(|_| Error::Invalid)?;
            Change::Number(name, millis)
        }
        N::SynCount => {
            let tries = positive::<u8>(value)?;
            let tries = Some(tries).filter(|tries| *tries <= SYN_TIMEOUTS_MAX);
            Change::Number(name, tries.ok_or(Error::Invalid)?.into())
        }
        N::DeferAccept => Change::Number(name, timeouts_within(value.number()?).into()),
        N::WindowClamp => {
            let bytes = u32::try_from(value.number()?).map_err(|_| Error::Invalid)?;
            Change::Number(name, if bytes == 0 { 0 } else { bytes.max(CLAMP_MIN) })
        }
        N::Linger => Change::Linger(linger_secs(value)?),
        _ => return Ok(None),
    }))
}

/// RFC 8200 5: no link of IPv6 is narrower.
const NARROWEST_V6: u32 = 1280;

/// The largest packet to hosts of IPv6; zero for what the path takes.
fn packet_bytes(value: OptionValue) -> Result<u32> {
    match u32::try_from(value.number()?).map_err(|_| Error::Invalid)? {
        0 => Ok(0),
        bytes if bytes >= NARROWEST_V6 => Ok(bytes.min(u16::MAX.into())),
        _ => Err(Error::Invalid),
    }
}

/// Of the type of service, what is TCP's own.
const ECN_BITS: u8 = 3;

fn buffer_bytes(name: OptionName, value: OptionValue) -> Result<u32> {
    limits::buffer(name, value.number()?).ok_or(Error::NoSuchOption)
}

/// Most timeouts that TCP_SYNCNT takes.
const SYN_TIMEOUTS_MAX: u8 = 127;
/// The smallest window that a program may ask for: half of Linux's smallest buffer.
const CLAMP_MIN: u32 = limits::RECEIVE_MIN / 2;
/// Seconds before an answer to a SYN is repeated: at first, and at most.
const PAUSE_FIRST_SECS: u32 = 1;
const PAUSE_SECS_MAX: u32 = 120;

/// How long so many timeouts take, in seconds.
fn pauses_secs(timeouts: u8) -> u32 {
    let pause = |timeout: u8| match PAUSE_FIRST_SECS.checked_shl(timeout.into()) {
        Some(pause) if pause != 0 => pause.min(PAUSE_SECS_MAX),
        _ => PAUSE_SECS_MAX,
    };
    (0..timeouts).map(pause).sum()
}

/// The timeouts that take so many seconds.
fn timeouts_within(secs: i32) -> u8 {
    let secs = u32::try_from(secs).unwrap_or(0);
    let enough = (0..u8::MAX).find(|timeouts| pauses_secs(*timeouts) >= secs);
    enough.unwrap_or(u8::MAX)
}

fn linger_secs(value: OptionValue) -> Result<Option<u16>> {
    let OptionValue::Linger(wait) = value else {
        return Err(Error::Invalid);
    };
    Ok(wait.map(|wait| u16::try_from(wait.as_secs()).unwrap_or(u16::MAX)))
}

impl Change {
    fn apply(self, options: &mut Options) {
        match self {
            Self::Flag(name, on) => set_flag(options, name, on),
            Self::Number(name, value) => set_number(options, name, value),
            Self::Linger(secs) => options.linger_secs = secs,
            Self::PathDiscovery(mode) => options.path_discovery = mode,
        }
    }
}

fn set_flag(options: &mut Options, name: OptionName, on: bool) {
    match name {
        OptionName::ReuseAddress => options.reuse_address = on,
        OptionName::ReusePort => options.reuse_port = on,
        OptionName::Broadcast => options.broadcast = on,
        OptionName::KeepAlive => options.keepalive = on,
        OptionName::NoDelay => options.no_delay = on,
        OptionName::Cork => options.cork = on,
        OptionName::V6Only => options.v6_only = on,
        OptionName::V6DontFragment => options.is_whole_v6 = on,
        OptionName::ReceiveErrors => options.queue_failures_v4 = on,
        OptionName::V6ReceiveErrors => options.queue_failures_v6 = on,
        OptionName::MulticastLoop => options.multicast_loop = on,
        _ => {}
    }
}

/// `value` was checked to fit by [`to_stack`].
fn set_number(options: &mut Options, name: OptionName, value: u32) {
    match name {
        OptionName::SendBuffer => (options.send_buffer, options.is_send_tuned) = (value, false),
        OptionName::ReceiveBuffer => (options.recv_buffer, options.is_recv_tuned) = (value, false),
        OptionName::TimeToLive => options.ttl = value as u8,
        OptionName::MinTimeToLive => options.min_ttl = value as u8,
        OptionName::V6MinHopCount => options.min_hop_count = value as u8,
        OptionName::MulticastTimeToLive => options.multicast_ttl = value as u8,
        OptionName::V6Mtu => options.packet_bytes_v6 = value as u16,
        OptionName::TypeOfService => options.tos = value as u8,
        OptionName::KeepIdle => options.keep_idle_secs = value as u16,
        OptionName::KeepInterval => options.keep_interval_secs = value as u16,
        OptionName::KeepCount => options.keep_count = value as u8,
        OptionName::UserTimeout => options.user_timeout_ms = value,
        OptionName::SynCount => options.syn_timeouts = value as u8,
        OptionName::DeferAccept => options.defer_timeouts = value as u8,
        OptionName::WindowClamp => options.window_clamp = value,
        _ => {}
    }
}
