//! Connections that move: out of a station as a value, and into another one of the same address
//! (`docs/tcp-repair.md`).
//!
//! So a program is replaced by a newer one without a peer noticing more than a pause, and a
//! connection goes to where its work is. Frames for the connection must not reach the new
//! station before it has been imported, or they are refused; afterwards they must, which is the
//! link's steering.

use inet::{Error, TcpSnapshot, Transport};
use mbuf::{Chain, RxFrame};
use rt::FrameIo;

use super::{BATCH_FRAMES, Station};
use crate::readiness::Kind;
use crate::socket::Connection;

/// Batches that are taken at most, while peers send on.
const BATCHES_MAX: usize = 64;

impl<P: FrameIo> Station<P> {
    /// Takes a connection out; its peer is told nothing, and its name is dead. For a minute, what
    /// the peer sends here is dropped rather than refused.
    ///
    /// Errors: `NotConnected` for one that is being made, or is over; `NoBuffers`. It stays then.
    pub fn export(&mut self, connection: Connection) -> Result<TcpSnapshot, Error> {
        let snapshot = self.stack.export(&mut self.world, connection.0)?;
        self.world.readiness.remove(connection.0);
        Ok(snapshot)
    }

    /// Puts a connection in. What it brings is received like what comes later.
    ///
    /// Errors: `AddressNotAvailable` if its end is not ours, `AddressInUse` if there is such a
    /// connection, `InvalidState` if there can be none, `NoBuffers`.
    pub fn import(&mut self, snapshot: &TcpSnapshot) -> Result<Connection, Error> {
        let id = self.stack.open(Transport::Tcp)?;
        if let Err(error) = self.stack.import(&mut self.world, id, snapshot) {
            self.stack.close(&mut self.world, id)?;
            return Err(error);
        }
        self.world.readiness.add(id, Kind::Stream);
        // It was not known when its bytes woke it; and whoever waited to send does not know that
        // there is room.
        if let Some(stream) = self.world.readiness.stream(id) {
            stream.is_starved = true;
        }
        self.world.readiness.note(id);
        Ok(Connection(id))
    }

    /// Takes the frames that have come and that nobody has looked at, as bytes: another station of the same link
    /// and address is to [hear](Self::hear) them.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        for _ in 0..BATCHES_MAX {
            self.world.io.receive(BATCH_FRAMES, &mut self.batch);
            if self.batch.is_empty() {
                break;
            }
            let frames = self.batch.drain(..);
            taken.extend(frames.map(|frame| frame.chain.slices().flatten().copied().collect()));
            self.world.io.end();
        }
        taken
    }

    /// Receives a frame that another station of the link has got. Without memory for it it is lost, as on a
    /// wire.
    pub fn hear(&mut self, frame: &[u8]) {
        let Some(mut buffer) = self.world.io.alloc() else {
            return;
        };
        if buffer.append(frame) == frame.len() {
            let frame = RxFrame {
                chain: Chain::from(buffer),
                ..RxFrame::default()
            };
            self.stack.receive(&mut self.world, frame);
            self.stack.flush(&mut self.world);
        }
    }
}
