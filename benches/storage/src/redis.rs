//! Servers that answer a SET when it is on the disk, and Redis' own client on the host: Redis with its append-only file on
//! ext4 and, by `libsietch.so`, on a log (`docs/vsa.md`); and a server of our own on the log.

use std::net::Ipv4Addr;
use std::process::Command;

use bench_pair::{example, library, tool};
use qemu::namespace;

use crate::shell::Shell;

const PORT: u16 = 6379;
/// How many ask at a time.
pub const CLIENTS: [u32; 2] = [1, 50];
const REDIS: &str = "/usr/bin/redis-server --protected-mode no --save '' --dir /mnt --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0";
const FILES: &str = "/mnt/appendonlydir/*.incr.aof";

/// The program that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Redis,
    /// `user/libos/examples/durable_kv`.
    Native,
}

/// What makes a SET durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// A file of ext4.
    Ext4,
    /// A log on a disk of the kernel's; Redis' by libsietch.so.
    Disk,
    /// In an area, by its ring.
    Ring,
    /// On an NVMe function.
    Function,
}

/// Whose network the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Kernel,
    /// The server's own: a VNIC on the machine's card.
    Vnic,
    /// A virtual function of an 82576.
    Function,
}

/// A server, what makes its SETs durable, and by what they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub server: Server,
    pub blocks: Blocks,
    pub network: Network,
}

/// Where the area is that ways by a ring use.
pub const AREA: &str = "/dev/vsa/log";

const VNIC: &str = "vnic0";
/// Where a machine with one has a virtual function of its card.
const VIRTUAL_CARD: &str = "0000:00:11.0";
/// A server's on a network of its own, and this host's in it.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 1);
const THIS_HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 2);

impl Way {
    /// On blocks that the kernel's disk has. In the order of the page.
    pub const ALL: [Self; 3] = [
        Self::EXT4,
        Self::of(Server::Redis, Blocks::Disk),
        Self::of(Server::Native, Blocks::Disk),
    ];
    pub const EXT4: Self = Self::of(Server::Redis, Blocks::Ext4);

    const fn of(server: Server, blocks: Blocks) -> Self {
        Self {
            server,
            blocks,
            network: Network::Kernel,
        }
    }

    /// Both servers with a log on such blocks, by such a network.
    pub fn both(blocks: Blocks, network: Network) -> [Self; 2] {
        [Server::Redis, Server::Native].map(|server| Self {
            server,
            blocks,
            network,
        })
    }

    /// How it is named on the page.
    pub fn name(self, clients: u32) -> String {
        let many = if clients == 1 { "" } else { "s" };
        format!("{}, {clients} client{many}", self.title())
    }

    /// The server, where its log is, and whose its network.
    pub fn title(self) -> String {
        let server = match (self.server, self.blocks) {
            (Server::Redis, Blocks::Ext4) => return "Redis, `appendfsync always`".into(),
            (Server::Redis, _) => "Redis, the same by `libsietch.so` on a log",
            (Server::Native, _) => "`durable_kv` on a log",
        };
        let blocks = match self.blocks {
            Blocks::Ext4 | Blocks::Disk => "",
            Blocks::Ring => " by an area's ring",
            Blocks::Function => " on an NVMe function",
        };
        let network = match self.network {
            Network::Kernel => "",
            Network::Vnic => ", by a VNIC of its own",
            Network::Function => ", by a virtual function of the card",
        };
        format!("{server}{blocks}{network}")
    }

    /// The path of the blocks with the log.
    fn path(self, shell: &Shell, function: &str) -> String {
        match self.blocks {
            Blocks::Ext4 | Blocks::Disk => format!("/dev/{}", shell.raw_disk()),
            Blocks::Ring => AREA.into(),
            Blocks::Function => format!("/sys/bus/pci/devices/{function}"),
        }
    }

    /// What the server's program is called.
    pub fn program(self) -> &'static str {
        match self.server {
            Server::Native => "durable_kv",
            Server::Redis => "redis-server",
        }
    }

    /// Where it answers.
    pub fn address(self) -> Ipv4Addr {
        match self.network {
            Network::Kernel => namespace::MACHINE,
            Network::Vnic | Network::Function => OWN_ADDRESS,
        }
    }

    /// Whether its stages are begun by system calls: those of who asks no kernel for frames are not. Nor are those of Redis where no
    /// call makes its write durable: it answers by write(2), which is then taken for the write to the log.
    pub fn has_stages(self) -> bool {
        let is_seen = (self.server, self.blocks) != (Server::Redis, Blocks::Function);
        self.network == Network::Kernel && is_seen
    }

    fn link(self) -> Option<&'static str> {
        match self.network {
            Network::Kernel => None,
            Network::Vnic => Some(VNIC),
            Network::Function => Some(VIRTUAL_CARD),
        }
    }

    /// Starts the server, if it does not run yet, in the other's place. A log begins with zeroes.
    ///
    /// Errors: what a server said that has ended since.
    pub fn start(self, shell: &mut Shell) -> Result<(), String> {
        self.start_on(shell, "")
    }

    /// The same where there is an NVMe function, whose blocks begin with zeroes.
    pub fn start_on(self, shell: &mut Shell, function: &str) -> Result<(), String> {
        let path = self.path(shell, function);
        let server = self.command(&path);
        let blank = match self.blocks {
            Blocks::Function => String::new(),
            _ => format!("busybox dd if=/dev/zero of={path} bs=4096 count=4 2>/dev/null;"),
        };
        if self.network == Network::Vnic {
            shell.run(&format!(
                "/bin/dladm show-vnic {VNIC} >/dev/null 2>&1 || /bin/dladm create-vnic -t -l eth0 {VNIC}"
            ))?;
        }
        shell.run(&format!(
            "if [ \"$(busybox cat /tmp/way)\" = '{self:?}' ]; then \
                 busybox pidof redis-server durable_kv >/dev/null && exit 0; busybox cat /tmp/server.log; exit 1; \
             fi; \
             busybox killall redis-server durable_kv 2>/dev/null; \
             while busybox pidof redis-server durable_kv >/dev/null; do busybox sleep 0.2; done; \
             busybox rm -rf /mnt/appendonlydir; {blank} busybox sync; echo '{self:?}' >/tmp/way; {server} >/tmp/server.log 2>&1 </dev/null &"
        ))?;
        let ask: &[u8] = match self.server {
            Server::Native => b"*1\r\n$4\r\nPING\r\n",
            Server::Redis => b"PING\r\n",
        };
        let answered = shell.wait_for_answer((self.address(), PORT), ask);
        answered.map_err(|why| {
            let said = shell.run("busybox tail -n 3 /tmp/server.log");
            format!("{why}; the server says {:?}", said.unwrap_or_default())
        })
    }

    /// What the guest's shell starts.
    fn command(self, path: &str) -> String {
        let link = self.link();
        match (self.server, self.blocks) {
            (Server::Redis, Blocks::Ext4) => REDIS.to_string(),
            (Server::Redis, _) => {
                let link =
                    link.map(|link| format!("SIETCH_LINK={link} SIETCH_ADDRESS={OWN_ADDRESS}/24 "));
                let link = link.unwrap_or_default();
                format!(
                    "env {link}LD_PRELOAD=/lib/libsietch.so SIETCH_LOG='{FILES}={path}' {REDIS}"
                )
            }
            (Server::Native, _) => {
                let link = link.map(|link| format!(" {link} {OWN_ADDRESS}/24"));
                format!("/bin/durable_kv {PORT} {path}{}", link.unwrap_or_default())
            }
        }
    }
}

/// Gives this host an address in the network that servers have of their own, once a machine is there.
pub fn reach_own_network() -> Result<(), String> {
    match namespace::add_address(THIS_HOST) {
        true => Ok(()),
        false => Err(format!("{THIS_HOST} cannot be added to the tap interface.")),
    }
}

/// Ends the server that runs.
pub fn stop(shell: &mut Shell) -> Result<(), String> {
    let stopped = shell.run(
        "busybox killall redis-server durable_kv 2>/dev/null; \
         while busybox pidof redis-server durable_kv >/dev/null; do busybox sleep 0.2; done; \
         busybox rm -f /tmp/way",
    );
    stopped.map(drop)
}

/// Builds the servers and the library; what has them in the guest.
pub fn additions() -> Result<Vec<String>, String> {
    let preloaded = library("sietch")?;
    let server = example("sietch-io", "durable_kv")?;
    Ok(vec![
        "/usr/bin/redis-server:/usr/bin/redis-server".into(),
        format!("{preloaded}:/lib/libsietch.so"),
        format!("{server}:/bin/durable_kv"),
        format!("{}:/bin/dladm", tool("dladm")?),
    ])
}

/// How fast it answered, and how late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// Requests a second.
    pub rate: f64,
    /// Milliseconds below which were half, 99 % and 99.9 % of the answers.
    pub percentiles_ms: [f64; 3],
}

/// So many SETs of 3 bytes, as the client has them.
pub fn set(way: Way, clients: u32, count: u32) -> Result<Answers, String> {
    let output = Command::new("redis-benchmark")
        .args(["-h", &way.address().to_string()])
        .args(["-c", &clients.to_string(), "-n", &count.to_string()])
        .args(["-t", "set", "-r", "1000", "--precision", "3"])
        .output()
        .map_err(|error| format!("redis-benchmark: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    answers(&said).ok_or_else(|| format!("redis-benchmark says {said:?}"))
}

fn answers(said: &str) -> Option<Answers> {
    let lines = said.split(['\n', '\r']).map(str::trim);
    let rate = lines
        .clone()
        .find_map(|line| line.strip_prefix("throughput summary: "))?;
    let rate = rate.split(' ').next()?.parse().ok()?;
    // "99.902% <= 5.103 milliseconds (cumulative count 4995)"
    let steps = lines.filter_map(|line| {
        let (share, rest) = line.split_once("% <= ")?;
        let ms = rest.split_once(" milliseconds")?.0;
        Some((share.parse::<f64>().ok()?, ms.parse::<f64>().ok()?))
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    let below = |wanted: f64| {
        let step = steps.iter().find(|(share, _)| *share >= wanted);
        step.map(|(_, ms)| *ms)
    };
    Some(Answers {
        rate,
        percentiles_ms: [below(50.0)?, below(99.0)?, below(99.9)?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_tail_stand_among_what_the_client_says() {
        let said = "\rSET: rps=0.0\n  50.000% <= 0.311 milliseconds (cumulative count 51)\n\
            99.219% <= 1.407 milliseconds (cumulative count 100)\n\
            99.902% <= 2.5 milliseconds (cumulative count 100)\n\
            \n  throughput summary: 1234.50 requests per second\n";
        let answers = answers(said).expect("all is there");
        assert_eq!(answers.rate, 1234.5);
        assert_eq!(answers.percentiles_ms, [0.311, 1.407, 2.5]);
    }
}
