//! Addresses and routes by rtnetlink(7): one request at a time, each acknowledged.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netlink::{Emit, Flags, Header, Messages, Object, Request, Writer};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use crate::network_config::{Prefix, Route};

const REQUEST_BYTES: usize = 1024;
const ANSWER_BYTES: usize = 32 << 10;
/// Datagrams of one answer.
const DATAGRAMS_MAX: usize = 64;
/// The kernel answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// `AF_INET`, `AF_INET6`.
const V4: u8 = 2;
const V6: u8 = 10;
/// `NLMSG_ERROR`, which acknowledges too, and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `RTM_DELADDR` and `RTM_GETADDR` from `RTM_NEWADDR`, and so for each object.
const DELETE: u16 = 1;
const GET: u16 = 2;
/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;
/// `RT_TABLE_MAIN`, `RTPROT_BOOT`, `RTN_UNICAST`.
const MAIN_TABLE: u32 = 254;
const BY_BOOT: u8 = 3;
const UNICAST: u8 = 1;

/// A link that has addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: [u8; 6],
}

/// A socket to the kernel's routes.
#[derive(Debug)]
pub struct RouteSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl RouteSocket {
    /// Opens one.
    pub fn open() -> io::Result<Self> {
        // No protocol is `NETLINK_ROUTE`.
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// The links of Ethernet, by number.
    pub fn ethernets(&mut self) -> io::Result<Vec<Ethernet>> {
        let all = netlink::Link::default();
        let mut found = Vec::new();
        self.ask(&all, all.kind() + GET, Flags::DUMP, |request| {
            let Object::Link(link) = request.object else {
                return;
            };
            let mac = link.address.and_then(|bytes| bytes.try_into().ok());
            if let (Some(mac), ETHERNET) = (mac, link.hardware_type) {
                found.push(Ethernet {
                    index: link.index,
                    name: String::from_utf8_lossy(link.name.unwrap_or_default()).into_owned(),
                    mac,
                });
            }
        })?;
        found.sort_by_key(|link| link.index);
        Ok(found)
    }

    /// Gives the link an address; one that it has already is no error.
    pub fn add_address(&mut self, link: u32, address: &Prefix) -> io::Result<()> {
        self.make(&of_link(link, address), Flags::REPLACE)
    }

    /// Gives the link an address of IPv4 in the place of all that it has, of which the kernel's stack has room for one.
    /// DHCP may have been faster, by the same one even; whatever sets an address or takes one away ends it.
    pub fn replace_address4(&mut self, link: u32, address: &Prefix) -> io::Result<()> {
        let new = of_link(link, address);
        if self.make(&new, Flags::EXCLUSIVE).is_ok() {
            return Ok(());
        }
        self.remove_addresses4(link)?;
        self.make(&new, Flags::EXCLUSIVE)
    }

    fn remove_addresses4(&mut self, link: u32) -> io::Result<()> {
        let all = netlink::Address {
            family: V4,
            ..netlink::Address::default()
        };
        let mut owned = Vec::new();
        self.ask(&all, all.kind() + GET, Flags::DUMP, |request| {
            let Object::Address(own) = request.object else {
                return;
            };
            let len = own.prefix_len;
            let found = own.local.or(own.address).map(|ip| Prefix { ip, len });
            owned.extend(found.filter(|_| own.link == link));
        })?;
        for address in owned {
            let gone = of_link(link, &address);
            self.ask(&gone, gone.kind() + DELETE, Flags::ACK, |_| {})?;
        }
        Ok(())
    }

    /// Adds a route by the link.
    pub fn add_route(&mut self, link: u32, route: &Route) -> io::Result<()> {
        let route = netlink::Route {
            family: family(route.via),
            destination_len: route.to.map_or(0, |to| to.len),
            table: MAIN_TABLE,
            protocol: BY_BOOT,
            kind: UNICAST,
            destination: route.to.map(|to| to.ip),
            link: Some(link),
            gateway: Some(route.via),
            ..netlink::Route::default()
        };
        self.make(&route, Flags::REPLACE)
    }

    fn make(&mut self, object: &impl Emit, how: Flags) -> io::Result<()> {
        let flags = Flags::ACK | Flags::CREATE | how;
        self.ask(object, object.kind(), flags, |_| {})
    }

    /// Sends a message and hands on the answers until the last.
    fn ask(
        &mut self,
        object: &impl Emit,
        kind: u16,
        flags: Flags,
        mut answered: impl FnMut(Request<'_>),
    ) -> io::Result<()> {
        self.sequence += 1;
        let header = Header {
            kind,
            flags: Flags::REQUEST | flags,
            sequence: self.sequence,
            port: 0,
        };
        let mut bytes = [0; REQUEST_BYTES];
        let mut writer = Writer::new(&mut bytes);
        let written = writer.message(header, |body| object.emit(body));
        written.map_err(|_| io::ErrorKind::InvalidInput)?;
        let len = writer.len();
        let kernel = SocketAddrNetlink::new(0, 0);
        let message = bytes.get(..len).unwrap_or_default();
        sendto(&self.socket, message, SendFlags::empty(), &kernel)?;
        let mut answer = vec![0; ANSWER_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            let (read, _) = recv(&self.socket, &mut *answer, RecvFlags::empty())?;
            let datagram = answer.get(..read).unwrap_or_default();
            if read_answers(datagram, self.sequence, &mut answered)? {
                return Ok(());
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn of_link(link: u32, address: &Prefix) -> netlink::Address<'static> {
    netlink::Address {
        family: family(address.ip),
        prefix_len: address.len,
        link,
        address: Some(address.ip),
        local: Some(address.ip),
        ..netlink::Address::default()
    }
}

fn family(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => V4,
        IpAddr::V6(_) => V6,
    }
}

/// Whether the last answer was among them.
fn read_answers(
    datagram: &[u8],
    sequence: u32,
    answered: &mut impl FnMut(Request<'_>),
) -> io::Result<bool> {
    for message in Messages::new(datagram) {
        let header = message.header();
        match header.kind {
            _ if header.sequence != sequence => {}
            DONE => return Ok(true),
            ERROR => {
                let code = message.body().first_chunk().copied();
                let code = i32::from_le_bytes(code.unwrap_or_default());
                return match code {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                };
            }
            _ => {
                // What cannot be read is of a kind that nobody asked for.
                if let Ok(request) = Request::parse(&message) {
                    answered(request);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_kernel_is_one_of_ours() {
        let mut bytes = [0; 64];
        let mut writer = Writer::new(&mut bytes);
        let header = Header {
            kind: ERROR,
            flags: Flags::NONE,
            sequence: 7,
            port: 0,
        };
        let written = writer.message(header, |body| {
            body.bytes(&(-17i32).to_le_bytes());
        });
        written.expect("room");
        let len = writer.len();
        let error = read_answers(&bytes[..len], 7, &mut |_| {}).expect_err("EEXIST");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!read_answers(&bytes[..len], 8, &mut |_| {}).expect("of another request"));
    }

    #[test]
    fn loopback_is_no_ethernet() {
        let links = RouteSocket::open().and_then(|mut socket| socket.ethernets());
        let links = links.expect("the host answers");
        assert!(links.iter().all(|link| link.name != "lo"));
    }
}
