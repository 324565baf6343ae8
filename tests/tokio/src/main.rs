//! Sends back each message that it reads: four bytes of length, then the bytes.
//!
//! Every message is read into a buffer of its own, whose pages nobody has touched, as
//! programs on Tokio do; the runtime waits for the rest through edge-triggered epoll, so a read
//! that ends short although more is queued stops the conversation for good.

#![forbid(unsafe_code)]

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PORT: u16 = 8080;
/// A peer may not ask for more.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    println!("listening");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

/// Until the peer closes; then nobody asks how it went.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    loop {
        let len = stream.read_u32().await? as usize;
        if len > MESSAGE_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut message = Vec::with_capacity(len);
        while message.len() < len {
            if stream.read_buf(&mut message).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        stream.write_all(&message).await?;
    }
}
