//! Bytes in and out of streams.

use mbuf::Chain;

use crate::addr::SocketId;
use crate::context::Context;
use crate::env::Env;
use crate::error::Error;
use crate::stack::Stack;
use crate::tcp::Tcb;

impl Stack {
    /// Queues up to `max` bytes that `fill` writes in place, and sends what may be sent.
    /// `fill` is called with one piece of buffer after the other; if it writes less than a
    /// piece, that ends the call. `WouldBlock` if the buffer is full: a wakeup follows.
    #[inline]
    pub fn send_with<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        max: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        cx.net.look_at_supply(cx.env);
        let tcb = self.sockets.tcp_mut(id)?;
        tcb.check_sendable()?;
        if max == 0 {
            return Ok(0);
        }
        let room = tcb.room_to_write(cx.net);
        if room == 0 {
            tcb.starve();
            return Err(Error::WouldBlock);
        }
        let mut is_offered = false;
        let sent = tcb.write(&mut cx, max.min(room), &mut |space| {
            is_offered = true;
            fill(space)
        });
        if sent < max {
            tcb.starve();
        }
        if sent == 0 {
            return match is_offered {
                true => Ok(0),
                false => Err(Error::WouldBlock),
            };
        }
        tcb.push_out(&mut cx);
        self.end_call(env);
        Ok(sent)
    }

    /// Queues what fits of `bytes`, without copying.
    pub fn send_chain<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        bytes: &mut Chain,
    ) -> Result<usize, Error> {
        self.net.look_at_supply(env);
        let tcb = self.sockets.tcp_mut(id)?;
        tcb.check_sendable()?;
        let sent = tcb.write_chain(&self.net, bytes);
        if !bytes.is_empty() {
            tcb.starve();
        }
        if sent == 0 && !bytes.is_empty() {
            return Err(Error::WouldBlock);
        }
        self.push_out(env, id);
        Ok(sent)
    }

    /// Sends what may be sent now.
    #[inline]
    pub(super) fn push_out<E: Env>(&mut self, env: &mut E, id: SocketId) {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        if let Some(tcb) = self.sockets.tcp_at(id.index) {
            tcb.push_out(&mut cx);
        }
        self.end_call(env);
    }

    /// What was sent may be for ourselves.
    #[inline]
    fn end_call<E: Env>(&mut self, env: &mut E) {
        if !self.net.loopback.is_empty() {
            self.deliver_loopback(env);
        }
    }

    /// Passes up to `max` received bytes to `take`, piece by piece; `take` says how many it
    /// has taken, and less than a piece ends the call. `Ok(0)` is the end of the stream,
    /// or that `take` took nothing.
    #[inline]
    pub fn recv_with<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        max: usize,
        take: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        let tcb = self.sockets.tcp_mut(id)?;
        if !tcb.check_receivable()? {
            return Ok(0);
        }
        let taken = each_piece(tcb.unread(), 0, max, take);
        tcb.received().advance(taken);
        tcb.after_read(&mut Context {
            now: env.now(),
            env,
            net: &mut self.net,
        });
        self.end_call(env);
        Ok(taken)
    }

    /// Takes up to `max` received bytes, without copying. Empty at the end of the stream.
    pub fn recv_chain<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        max: usize,
    ) -> Result<Chain, Error> {
        let tcb = self.sockets.tcp_mut(id)?;
        if !tcb.check_receivable()? {
            return Ok(Chain::new());
        }
        let bytes = tcb.received().split_to(max);
        tcb.after_read(&mut Context {
            now: env.now(),
            env,
            net: &mut self.net,
        });
        self.end_call(env);
        Ok(bytes)
    }

    /// Like [`recv_with`](Self::recv_with), leaving the bytes where they are, from the
    /// `skip`-th on.
    pub fn peek_with(
        &mut self,
        id: SocketId,
        skip: usize,
        max: usize,
        take: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        let tcb = self.sockets.tcp_mut(id)?;
        if !tcb.check_receivable()? {
            return Ok(0);
        }
        Ok(each_piece(tcb.unread(), skip, max, take))
    }
}

impl Tcb {
    /// Sends what may be sent now, and files what that has changed.
    #[inline(always)]
    fn push_out<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if !self.waits_behind_frame(cx.net) {
            self.output_now(cx);
        }
        self.bill(cx.net);
        cx.net.wheel.arm(self.id.index, self.deadline());
    }

    /// The program has read.
    #[inline]
    fn after_read<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.on_read(cx);
        self.bill_after_read(cx.net);
    }
}

/// Passes up to `max` bytes to `take` from the `skip`-th on; says how many it has taken.
#[inline]
fn each_piece(
    bytes: &Chain,
    skip: usize,
    max: usize,
    take: &mut dyn FnMut(&[u8]) -> usize,
) -> usize {
    match bytes.as_single() {
        Some(piece) if skip == 0 && max != 0 && !piece.is_empty() => {
            let piece = &piece[..piece.len().min(max)];
            take(piece).min(piece.len())
        }
        _ => each_of_pieces(bytes, skip, max, take),
    }
}

/// The same where there are several or none, or some are passed over.
fn each_of_pieces(
    bytes: &Chain,
    mut skip: usize,
    max: usize,
    take: &mut dyn FnMut(&[u8]) -> usize,
) -> usize {
    let mut done = 0;
    for piece in bytes.slices() {
        let skipped = skip.min(piece.len());
        skip -= skipped;
        let piece = &piece[skipped..];
        if piece.is_empty() {
            continue;
        }
        let piece = &piece[..piece.len().min(max - done)];
        if piece.is_empty() {
            break;
        }
        let taken = take(piece).min(piece.len());
        done += taken;
        if taken < piece.len() {
            break;
        }
    }
    done
}
