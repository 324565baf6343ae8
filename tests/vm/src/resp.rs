//! A Redis client: RESP2 over one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection to Redis.
pub struct Redis {
    stream: BufReader<TcpStream>,
}

impl Redis {
    /// Connects to a server.
    pub fn connect(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let timeout = stream.set_read_timeout(Some(Duration::from_secs(30)));
        timeout.map_err(|error| error.to_string())?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a command and returns the reply as text; an error reply is an error.
    pub fn call(&mut self, words: &[&str]) -> Result<String, String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        let io = |error: std::io::Error| format!("{words:?}: {error}");
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(io)?;
        self.reply().map_err(|why| format!("{words:?}: {why}"))
    }

    fn reply(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.stream
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let line = line.trim_end();
        let (kind, rest) = line
            .split_at_checked(1)
            .ok_or("the connection was closed")?;
        match kind {
            "+" | ":" => Ok(rest.to_string()),
            "-" => Err(rest.to_string()),
            "$" => self.bulk(rest.parse().map_err(|_| format!("the reply {line}"))?),
            "*" => {
                let count: i64 = rest.parse().map_err(|_| format!("the reply {line}"))?;
                let items: Result<Vec<_>, _> = (0..count).map(|_| self.reply()).collect();
                items.map(|items| items.join("\n"))
            }
            _ => Err(format!("the reply {line}")),
        }
    }

    fn bulk(&mut self, len: i64) -> Result<String, String> {
        let Ok(len) = usize::try_from(len) else {
            return Ok("(nil)".into());
        };
        let mut bytes = vec![0; len + 2];
        self.stream
            .read_exact(&mut bytes)
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }

    /// Waits until a field of INFO has a value.
    pub fn wait_for_info(&mut self, field: &str, value: &str) -> Result<(), String> {
        let wanted = format!("{field}:{value}");
        for _ in 0..600 {
            let info = self.call(&["INFO", "persistence"])?;
            if info.lines().any(|line| line.trim_end() == wanted) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("INFO never shows {wanted}"))
    }
}
