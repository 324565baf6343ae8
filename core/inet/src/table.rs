//! The sockets of a stack, in slots that ids name.

use alloc::vec::Vec;

use crate::addr::SocketId;
use crate::boxed::Boxed;
use crate::error::Error;
use crate::tcp::{Frozen, Listener, Tcb};
use crate::udp::UdpSocket;

/// What a slot holds. Sockets are boxed so that an unused slot is small.
pub(crate) enum Socket {
    Free { next: Option<u32> },
    Tcp(Boxed<Tcb>),
    Listener(Boxed<Listener>),
    Udp(Boxed<UdpSocket>),
    Frozen(Boxed<Frozen>),
}

struct Slot {
    /// Changes when the slot is freed or its program lets go of the id.
    generation: u32,
    socket: Socket,
}

/// All sockets.
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Option<u32>,
    used: usize,
    limit: usize,
}

impl Table {
    pub fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: None,
            used: 0,
            limit,
        }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// Puts what `make` makes into a slot.
    ///
    /// Errors: `NoBuffers` at the limit, or if there is no memory for a larger table or for the
    /// socket.
    pub fn insert(
        &mut self,
        make: impl FnOnce(SocketId) -> Option<Socket>,
    ) -> Result<SocketId, Error> {
        let index = match self.free {
            Some(index) => index,
            None if self.slots.len() < self.limit => {
                self.slots.try_reserve(1).map_err(|_| Error::NoBuffers)?;
                self.slots.push(Slot {
                    generation: 0,
                    socket: Socket::Free { next: None },
                });
                let index = self.slots.len() as u32 - 1;
                self.free = Some(index);
                index
            }
            None => return Err(Error::NoBuffers),
        };
        let slot = &mut self.slots[index as usize];
        let id = SocketId {
            index,
            generation: slot.generation,
        };
        let socket = make(id).ok_or(Error::NoBuffers)?;
        if let Socket::Free { next } = core::mem::replace(&mut slot.socket, socket) {
            self.free = next;
        }
        self.used += 1;
        Ok(id)
    }

    /// Makes the id stale; what is in the slot lives on.
    pub fn disown(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    /// Empties the slot.
    pub fn remove(&mut self, index: u32) -> Option<Socket> {
        let slot = self.slots.get_mut(index as usize)?;
        if let Socket::Free { .. } = slot.socket {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        let socket = core::mem::replace(&mut slot.socket, Socket::Free { next: self.free });
        self.free = Some(index);
        self.used -= 1;
        Some(socket)
    }

    #[inline]
    pub fn at_mut(&mut self, index: u32) -> Option<&mut Socket> {
        Some(&mut self.slots.get_mut(index as usize)?.socket)
    }

    #[inline]
    pub fn get(&self, id: SocketId) -> Result<&Socket, Error> {
        match self.slots.get(id.index as usize) {
            Some(slot) if slot.generation == id.generation => Ok(&slot.socket),
            _ => Err(Error::BadSocket),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: SocketId) -> Result<&mut Socket, Error> {
        match self.slots.get_mut(id.index as usize) {
            Some(slot) if slot.generation == id.generation => Ok(&mut slot.socket),
            _ => Err(Error::BadSocket),
        }
    }

    pub fn tcp(&self, id: SocketId) -> Result<&Tcb, Error> {
        match self.get(id)? {
            Socket::Tcp(tcb) => Ok(tcb),
            _ => Err(Error::InvalidState),
        }
    }

    #[inline]
    pub fn tcp_mut(&mut self, id: SocketId) -> Result<&mut Tcb, Error> {
        match self.get_mut(id)? {
            Socket::Tcp(tcb) => Ok(tcb),
            _ => Err(Error::InvalidState),
        }
    }

    pub fn frozen(&self, id: SocketId) -> Result<&Frozen, Error> {
        match self.get(id)? {
            Socket::Frozen(frozen) => Ok(frozen),
            _ => Err(Error::InvalidState),
        }
    }

    pub fn frozen_mut(&mut self, id: SocketId) -> Result<&mut Frozen, Error> {
        match self.get_mut(id)? {
            Socket::Frozen(frozen) => Ok(frozen),
            _ => Err(Error::InvalidState),
        }
    }

    #[inline]
    pub fn tcp_at(&mut self, index: u32) -> Option<&mut Tcb> {
        match self.at_mut(index)? {
            Socket::Tcp(tcb) => Some(tcb),
            _ => None,
        }
    }

    pub fn listener_at(&mut self, index: u32) -> Option<&mut Listener> {
        match self.at_mut(index)? {
            Socket::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    pub fn udp_mut(&mut self, id: SocketId) -> Result<&mut UdpSocket, Error> {
        match self.get_mut(id)? {
            Socket::Udp(socket) => Ok(socket),
            _ => Err(Error::InvalidState),
        }
    }

    /// Slots, used or not.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.slots.iter().map(|slot| &slot.socket)
    }
}
