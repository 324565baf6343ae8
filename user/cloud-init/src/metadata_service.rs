//! Metadata by HTTP at 169.254.169.254: EC2's second version with a token, and what speaks like it (OpenStack, and
//! clouds that ask for no token).
//!
//! The network is asked only when the image was built to ask, and for [`PATIENCE`] in all: a network without such a
//! service mostly drops the first packet, and nothing tells that from a slow one.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{self, Request};
use crate::seed::Seed;

/// Where clouds have it.
pub const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::new(169, 254, 169, 254), 80);
/// For an address by DHCP and the service together.
pub const PATIENCE: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(50);

const TOKEN: &str = "/latest/api/token";
const TOKEN_LIFETIME: (&str, &str) = ("X-aws-ec2-metadata-token-ttl-seconds", "60");
const TOKEN_HEADER: &str = "X-aws-ec2-metadata-token";
const META_DATA: &str = "/latest/meta-data/";
const USER_DATA: &str = "/latest/user-data";

/// Asks the service at `server` for what a seed would say.
pub fn ask(server: SocketAddr) -> io::Result<Seed> {
    let deadline = Instant::now() + PATIENCE;
    let token = token(server, deadline)?;
    let service = Service {
        server,
        deadline,
        token,
    };
    Ok(Seed {
        meta_data: service.meta_data()?,
        user_data: service.get(USER_DATA)?.unwrap_or_default(),
        network_config: String::new(),
    })
}

/// Waits for a way to the service; one without tokens refuses to give any.
fn token(server: SocketAddr, deadline: Instant) -> io::Result<Option<String>> {
    let request = Request {
        method: "PUT",
        path: TOKEN,
        header: Some(TOKEN_LIFETIME),
    };
    loop {
        match http::ask(server, &request, deadline) {
            Err(why) if why.kind() == ErrorKind::InvalidData => return Ok(None),
            Err(why) if has_no_way(&why) && Instant::now() < deadline => thread::sleep(POLL),
            // A header of two lines would be two.
            other => return Ok(other?.filter(|token| !token.contains(['\r', '\n']))),
        }
    }
}

/// Whether the machine has no address yet.
fn has_no_way(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::AddrNotAvailable
    )
}

struct Service {
    server: SocketAddr,
    deadline: Instant,
    token: Option<String>,
}

impl Service {
    fn get(&self, path: &str) -> io::Result<Option<String>> {
        let token = self.token.as_deref();
        let request = Request {
            method: "GET",
            path,
            header: token.map(|token| (TOKEN_HEADER, token)),
        };
        http::ask(self.server, &request, self.deadline)
    }

    fn item(&self, name: &str) -> io::Result<Option<String>> {
        self.get(&format!("{META_DATA}{name}"))
    }

    /// The answers as a seed's `meta-data` has them.
    fn meta_data(&self) -> io::Result<String> {
        let mut text = String::new();
        let name = match self.item("local-hostname")? {
            None => self.item("hostname")?,
            name => name,
        };
        let values = [
            ("instance-id", self.item("instance-id")?),
            ("local-hostname", name),
        ];
        for (name, value) in values {
            let value = value.iter();
            text.extend(value.map(|value| format!("{name}: {}\n", quoted(value))));
        }
        text += "public-keys:\n";
        let keys = self.keys()?;
        text.extend(keys.iter().map(|key| format!("- {}\n", quoted(key))));
        Ok(text)
    }

    /// Lines `0=name` stand for folders with each key.
    fn keys(&self) -> io::Result<Vec<String>> {
        let list = self.item("public-keys/")?.unwrap_or_default();
        let numbers = list.lines().filter_map(|line| line.split('=').next());
        let numbers = numbers.filter_map(|number| number.trim().parse::<u32>().ok());
        let key = |number| self.item(&format!("public-keys/{number}/openssh-key"));
        numbers
            .filter_map(|number| key(number).transpose())
            .collect()
    }
}

/// The first line as a text of YAML (section 7.3.2, single-quoted style).
fn quoted(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    format!("'{}'", line.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::reader::settings_of;

    /// Answers by path until the thread's test ends; who brings no token gets 401, but for the token.
    fn serve(has_tokens: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client");
                let lines = BufReader::new(stream.try_clone().expect("the same")).lines();
                let head: Vec<String> = lines
                    .map(|line| line.expect("a line"))
                    .take_while(|line| !line.is_empty())
                    .collect();
                let has_token = head
                    .iter()
                    .any(|line| line == "X-aws-ec2-metadata-token: T");
                let (status, body) = match head[0].trim_end_matches(" HTTP/1.1") {
                    "PUT /latest/api/token" if has_tokens => (200, "T"),
                    "PUT /latest/api/token" => (405, ""),
                    _ if has_tokens && !has_token => (401, ""),
                    "GET /latest/meta-data/instance-id" => (200, "i-1"),
                    "GET /latest/meta-data/hostname" => (200, "web.example"),
                    "GET /latest/meta-data/public-keys/" => (200, "0=mine\n1=yours"),
                    "GET /latest/meta-data/public-keys/0/openssh-key" => (200, "ssh-rsa A it's\n"),
                    _ => (404, "not here"),
                };
                let bytes = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} x\r\nContent-Length: {bytes}\r\n\r\n{body}"
                );
            }
        });
        address
    }

    #[test]
    fn a_service_with_or_without_tokens_tells_name_and_keys() {
        for has_tokens in [true, false] {
            let seed = ask(serve(has_tokens)).expect("an answer");
            let settings = settings_of(&seed);
            assert_eq!(settings.instance_id.as_deref(), Some("i-1"));
            assert_eq!(settings.host_name.as_deref(), Some("web.example"));
            assert_eq!(settings.keys[0].keys, ["ssh-rsa A it's"]);
            assert_eq!(settings.notes, [""; 0]);
        }
    }

    #[test]
    fn nobody_there_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        assert!(ask(address).is_err());
    }
}
