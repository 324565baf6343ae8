//! Ports of this host: which are free, and which process holds one.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use crate::machine::{Forward, Protocol};

/// A TCP port of the loopback address that was free a moment ago.
pub fn free_tcp_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// Whether the host's side of a forward can be listened at.
pub fn is_port_free(forward: &Forward) -> bool {
    let address = SocketAddrV4::new(forward.host_ip, forward.host_port);
    match forward.protocol {
        Protocol::Tcp => bind_tcp(address).is_ok(),
        Protocol::Udp => UdpSocket::bind(address).is_ok(),
    }
}

/// Takes a port and does not listen: a client that calls for the machine just now finds it closed, and no connection that ends at once.
fn bind_tcp(address: SocketAddrV4) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // Connections that have ended keep nobody from it.
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)
}

/// The process that holds a port, as `name (pid)`; `None` where we may not see it.
pub fn holder_of_port(port: u16, protocol: Protocol) -> Option<String> {
    let table = match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    let tables = [format!("/proc/net/{table}"), format!("/proc/net/{table}6")];
    let inode = tables.iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines()
            .skip(1)
            .find_map(|line| inode_of_listener(line, port, protocol))
    })?;
    let pid = process_with_socket(&inode)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} ({pid})", name.trim_end()))
}

/// The inode in a line of `/proc/net/tcp` if it listens at `port` (proc(5)).
fn inode_of_listener(line: &str, port: u16, protocol: Protocol) -> Option<String> {
    const TCP_LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let is_listening = protocol == Protocol::Udp || *fields.get(3)? == TCP_LISTEN;
    let is_ours = u16::from_str_radix(local_port, 16).ok()? == port;
    (is_listening && is_ours).then(|| fields.get(9).map(ToString::to_string))?
}

fn process_with_socket(inode: &str) -> Option<String> {
    let link = format!("socket:[{inode}]");
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let pid = process.file_name().into_string().ok()?;
        pid.parse::<u32>().ok()?;
        let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let holds = files.any(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == link.as_str())
        });
        holds.then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_port_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let holder = holder_of_port(port, Protocol::Tcp).expect("we hold it");
        assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        let forward = Forward {
            host_ip: Ipv4Addr::LOCALHOST,
            host_port: port,
            guest_port: 1,
            protocol: Protocol::Tcp,
        };
        assert!(!is_port_free(&forward));
    }
}
