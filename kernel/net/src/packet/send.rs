//! Frames that a program makes itself.

use alloc::sync::Arc;

use capture::View;
use mbuf::{Chain, TxFrame};
use mm::io::Source;
use sync::{Error, Result};
use wire::ETHERNET_HEADER_BYTES;

use super::listener::Listener;
use super::tap;
use crate::device::memory::packet_pool;
use crate::stack::NetStack;
use crate::stack::interface::{Interface, LOOPBACK};
use vfs::socket::PacketAddress;

/// Bytes that a VLAN tag adds to a header.
const TAG_BYTES: usize = 4;

/// Sends all of `from` as one frame; says how many bytes the program gave.
///
/// A socket that sees link headers also writes them; for the other kind `to` says to which
/// station, and with which type.
///
/// Errors: `NoSuchDevice` without an interface, `MessageTooLong`, `Invalid` for less than a
/// header, `NoBuffers`, `BadAddress`.
pub(super) fn send(
    stack: &NetStack,
    listener: &Arc<Listener>,
    to: Option<&PacketAddress>,
    from: &mut Source<'_>,
) -> Result<usize> {
    let number = to.map_or(listener.binding().interface, |to| to.interface);
    let interface = stack.interface(number).ok_or(Error::NoSuchDevice)?;
    let len = from.remaining();
    let header_bytes = match listener.view {
        View::Link => ETHERNET_HEADER_BYTES + TAG_BYTES,
        View::Network => 0,
    };
    if len > interface.mtu as usize + header_bytes {
        return Err(Error::MessageTooLong);
    }
    if listener.view == View::Link && len < ETHERNET_HEADER_BYTES {
        return Err(Error::Invalid);
    }
    let mut chain = Chain::new();
    if listener.view == View::Network {
        let protocol = to.map_or(listener.binding().protocol, |to| to.protocol);
        append(&mut chain, &header(&interface, to, protocol))?;
    }
    copy(&mut chain, from)?;
    transmit(stack, listener, &interface, chain)?;
    Ok(len)
}

fn header(
    interface: &Interface,
    to: Option<&PacketAddress>,
    protocol: u16,
) -> [u8; ETHERNET_HEADER_BYTES] {
    let station = to.map_or([0; 8], |to| to.station);
    let [a, b, c, d, e, f, ..] = station;
    let [g, h, i, j, k, l] = interface.mac;
    let [high, low] = protocol.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, high, low]
}

/// The program's bytes in packet buffers.
///
/// Errors: `NoBuffers`, `BadAddress`.
pub fn chain_of(from: &mut Source<'_>) -> Result<Chain> {
    let mut chain = Chain::new();
    copy(&mut chain, from)?;
    Ok(chain)
}

/// Copies the program's bytes to the end of `chain`. May block.
fn copy(chain: &mut Chain, from: &mut Source<'_>) -> Result<()> {
    let mut piece = [0; 512];
    while from.remaining() != 0 {
        let count = from.take_whole(&mut piece)?;
        append(chain, &piece[..count])?;
    }
    Ok(())
}

fn append(chain: &mut Chain, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let mut done = chain.append_in_place(bytes);
        if done == 0 {
            let mut part = packet_pool().alloc().ok_or(Error::NoBuffers)?;
            done = part.append(bytes);
            chain.push_back(part);
        }
        bytes = &bytes[done..];
    }
    Ok(())
}

fn transmit(
    stack: &NetStack,
    listener: &Arc<Listener>,
    interface: &Interface,
    mut chain: Chain,
) -> Result<()> {
    if interface.number == LOOPBACK {
        chain.advance(ETHERNET_HEADER_BYTES);
        return stack.send_to_ourselves(chain);
    }
    let frame = TxFrame {
        chain,
        ..TxFrame::default()
    };
    tap::show_sent(&stack.shared, interface.number, &frame, Some(listener));
    stack.send_frame(interface.number, frame)
}
