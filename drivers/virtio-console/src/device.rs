//! The device: all its ports, and the pair of queues that speaks about them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hal::{BytePorts, DmaSource, HostEnd, NoBuffers, PortNumber};
use virtio::{Error, Features, QueueShape, Transport};

use crate::control::{Event, Notice};
use crate::port::{Buffers, Port, QUEUE_SIZE};

/// The device has control queues, and may have several ports.
const MULTIPORT: u64 = 1 << 1;
/// Where the configuration says how many ports there can be.
const PORTS_AT: usize = 4;
/// More ports than these are left alone.
const PORTS_MAX: u32 = 8;
/// The first queue of the pair for control messages.
const CONTROL: u16 = 2;
/// Buffers of the control queues: more than the device has to say at once, each large
/// enough for a name.
const CONTROL_BUFFERS: Buffers = Buffers {
    count: 32,
    bytes: 128,
};
/// Bytes of a buffer for what comes: QEMU reads no more from its host at once.
const INCOMING_BYTES: usize = 4096;
/// Bytes of a buffer for what goes.
const OUTGOING_BYTES: usize = 16 << 10;
/// A longer name is none of ours.
const NAME_BYTES_MAX: usize = 64;

/// A console device with its ports.
pub struct VirtioConsole<M> {
    transport: Transport,
    memory: M,
    control: Port,
    /// By their number.
    ports: Vec<Port>,
    /// Bytes on their way between a buffer and whoever takes or gives them.
    scratch: Box<[u8]>,
}

impl<M: DmaSource> VirtioConsole<M> {
    /// Brings the device up. Everything raises MSI-X entry `vector`, or the device's line.
    pub fn new(transport: Transport, memory: M, vector: u16) -> Result<Self, Error> {
        let agreed = transport.negotiate(MULTIPORT, |_| Features::EVENT_IDX.bits())?;
        let count = transport
            .config()
            .window(PORTS_AT, 4)
            .ok_or(Error::RegistersOutside)?
            .read32(0)
            .min(PORTS_MAX);
        let pair = |index| {
            let event_index = agreed & Features::EVENT_IDX.bits() != 0;
            let shape = QueueShape {
                index,
                size_max: QUEUE_SIZE,
                vector,
                event_index,
            };
            Port::new(&transport, &memory, shape)
        };
        let control = pair(CONTROL)?;
        let numbers = 0..count as u16;
        let ports: Result<Vec<Port>, Error> =
            numbers.map(|number| pair(first_queue(number))).collect();
        let ports = ports?;
        transport.start();
        let mut console = Self {
            transport,
            memory,
            control,
            ports,
            scratch: vec![0; OUTGOING_BYTES].into_boxed_slice(),
        };
        let is_ready = console.start_control();
        is_ready.map_err(|NoBuffers| Error::OutOfMemory)?;
        Ok(console)
    }

    fn start_control(&mut self) -> Result<(), NoBuffers> {
        let Port {
            receiver,
            transmitter,
            ..
        } = &mut self.control;
        transmitter.add_buffers(&self.memory, CONTROL_BUFFERS)?;
        receiver.add_buffers(&self.memory, CONTROL_BUFFERS)?;
        receiver.collect();
        self.tell(Notice::DeviceReady);
        Ok(())
    }

    /// Sends a control message. The device reads these as they come, so there is room.
    fn tell(&mut self, notice: Notice) {
        if self.control.transmitter.has_room() {
            self.control.transmitter.send(&notice.encode());
        }
    }

    fn obey(&mut self, number: usize, event: Event<'_>) {
        let Some(port) = self.ports.get_mut(number) else {
            return;
        };
        match event {
            Event::Added => self.tell(Notice::PortReady(number as u32)),
            Event::Connected(true) => port.host_end = HostEnd::Held,
            Event::Connected(false) | Event::Removed => port.host_end = HostEnd::LetGo,
            Event::Named(name) if name.len() <= NAME_BYTES_MAX => port.name = name.to_vec(),
            Event::Named(_) => {}
        }
    }

    fn port(&mut self, number: PortNumber) -> Option<&mut Port> {
        self.ports.get_mut(number.0)
    }
}

/// The receive queue of a port; its transmit queue follows (section 5.3.2).
fn first_queue(port: u16) -> u16 {
    match port {
        0 => 0,
        port => 2 * port + 2,
    }
}

impl<M: DmaSource> BytePorts for VirtioConsole<M> {
    fn service(&mut self) {
        self.control.receiver.collect();
        while self.control.receiver.readable() != 0 {
            let mut message = [0; CONTROL_BUFFERS.bytes];
            let len = self.control.receiver.peek(&mut message);
            self.control.receiver.skip_buffer();
            if let Some((number, event)) = Event::decode(&message[..len]) {
                self.obey(number, event);
            }
        }
    }

    fn find(&self, name: &[u8]) -> Option<PortNumber> {
        let at = self.ports.iter().position(|port| port.name == name)?;
        Some(PortNumber(at))
    }

    fn open(
        &mut self,
        number: PortNumber,
        incoming: usize,
        outgoing: usize,
    ) -> Result<(), NoBuffers> {
        let port = self.ports.get_mut(number.0).ok_or(NoBuffers)?;
        let outgoing = Buffers {
            count: outgoing,
            bytes: OUTGOING_BYTES,
        };
        let incoming = Buffers {
            count: incoming,
            bytes: INCOMING_BYTES,
        };
        port.transmitter.add_buffers(&self.memory, outgoing)?;
        port.receiver.add_buffers(&self.memory, incoming)?;
        port.receiver.collect();
        self.tell(Notice::PortOpen(number.0 as u32));
        Ok(())
    }

    fn host_end(&self, number: PortNumber) -> HostEnd {
        match self.ports.get(number.0) {
            Some(port) if port.transmitter.is_broken() => HostEnd::LetGo,
            Some(port) => port.host_end,
            None => HostEnd::Awaited,
        }
    }

    fn readable(&mut self, number: PortNumber) -> usize {
        self.port(number).map_or(0, |port| {
            port.receiver.collect();
            port.receiver.readable()
        })
    }

    fn receive(&mut self, number: PortNumber, take: &mut dyn FnMut(&[u8]) -> usize) -> usize {
        let Some(port) = self.ports.get_mut(number.0) else {
            return 0;
        };
        port.receiver.collect();
        let shown = port.receiver.peek(&mut self.scratch);
        if shown == 0 {
            return 0;
        }
        let taken = take(&self.scratch[..shown]).min(shown);
        port.receiver.skip(taken);
        taken
    }

    fn has_room(&mut self, number: PortNumber) -> bool {
        self.port(number)
            .is_some_and(|port| port.transmitter.has_room())
    }

    fn send(&mut self, number: PortNumber, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> usize {
        let Some(port) = self.ports.get_mut(number.0) else {
            return 0;
        };
        if !port.transmitter.has_room() {
            return 0;
        }
        let filled = fill(&mut self.scratch).min(self.scratch.len());
        port.transmitter.send(&self.scratch[..filled])
    }

    fn is_flushed(&mut self, number: PortNumber) -> bool {
        self.port(number)
            .is_none_or(|port| port.transmitter.is_broken() || port.transmitter.is_flushed())
    }
}

impl<M> Drop for VirtioConsole<M> {
    fn drop(&mut self) {
        self.transport.stop();
        self.control.retire();
        self.ports.iter_mut().for_each(Port::retire);
    }
}
