//! What the host asks for: the command line and the file `/.sietch/run`.
//!
//! The command line is words `key=value` split by spaces; a value's other bytes are
//! percent-encoded (RFC 3986, section 2.1). The file holds records that end with NUL:
//! `arg=` and `env=` repeated in order, `cwd=`, `user=UID:GID`, `group=GID` of each further group, `caps=HEX` (the
//! capabilities that programs can get), `nnp=1` (exec grants none), `rlimit=NUMBER:SOFT:HARD`, `umask=OCTAL`,
//! `sysctl=NAME=VALUE`, and what the host has for the program's input
//! and output. A host with ports says `stdio=`, a letter for each descriptor (`t` a terminal,
//! `s` a stream, `o` the same as descriptor 1), and before it `window=ROWSxCOLUMNS`; one with the serial
//! port alone says `tty=1` if somebody sits there.

use alloc::vec::Vec;

use cred::{Limit, Resource};
use linux::{Changes, Root, Settings, Volume, VolumeSource};
use tty::console::{Host, HostFile};

/// The value of the last `key=` on the command line, decoded.
pub fn value(key: &str) -> Option<Vec<u8>> {
    values(key).last()
}

/// The values of all `key=` on the command line, decoded.
pub fn values(key: &str) -> impl Iterator<Item = Vec<u8>> {
    raw_values(key).map(|text| decode(text.as_bytes()))
}

/// The values of all `key=` on the command line, as they stand.
pub fn raw_values(key: &str) -> impl Iterator<Item = &'static str> {
    let words = mach::boot::info().cmdline().split(' ');
    words.filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
}

/// What is to be the root: a disk (`root=UUID=...`, as Linux has it) or a folder of the host (`root=9P=TAG`). With
/// `overlay=memory` or `overlay=UUID=...` it is only read, and changes go there.
pub fn root() -> Option<Root> {
    let text = raw_values("root").last()?;
    let source = match text.strip_prefix("9P=") {
        Some(tag) => VolumeSource::Folder(decode(tag.as_bytes())),
        None => VolumeSource::Disk(parse_uuid(text.strip_prefix("UUID=")?)?),
    };
    let changes = match raw_values("overlay").last() {
        None => Changes::InPlace,
        Some("memory") => Changes::Memory,
        Some(text) => Changes::Disk(parse_uuid(text.strip_prefix("UUID=")?)?),
    };
    Some(Root { source, changes })
}

/// What is to be mounted: folders of the host (`mount9p=TAG:...`, `mountvirtiofs=TAG:...`), disks (`mountdisk=UUID:...`) and file systems in
/// memory (`mounttmpfs=OPTIONS:...`), what is above before what is below.
pub fn volumes() -> Vec<Volume> {
    let folders = raw_values("mount9p").filter_map(|text| {
        let tag = |tag: &str| Some(VolumeSource::Folder(decode(tag.as_bytes())));
        volume(text, tag)
    });
    let served = raw_values("mountvirtiofs").filter_map(|text| {
        let tag = |tag: &str| Some(VolumeSource::Served(decode(tag.as_bytes())));
        volume(text, tag)
    });
    let disks = raw_values("mountdisk").filter_map(|text| {
        let uuid = |uuid: &str| Some(VolumeSource::Disk(parse_uuid(uuid)?));
        volume(text, uuid)
    });
    let memory = raw_values("mounttmpfs").filter_map(|text| {
        let options = |options: &str| Some(VolumeSource::Memory(decode(options.as_bytes())));
        volume(text, options)
    });
    let mut volumes: Vec<Volume> = folders.chain(served).chain(disks).chain(memory).collect();
    volumes.sort_by_key(|volume| volume.path.split(|&byte| byte == b'/').count());
    volumes
}

/// `SOURCE:/guest/path[:ro]`, each part percent-encoded.
fn volume(text: &str, source: impl Fn(&str) -> Option<VolumeSource>) -> Option<Volume> {
    let (name, rest) = text.split_once(':')?;
    let (path, is_read_only) = match rest.strip_suffix(":ro") {
        Some(path) => (path, true),
        None => (rest, false),
    };
    Some(Volume {
        source: source(name)?,
        path: decode(path.as_bytes()),
        is_read_only,
    })
}

/// 32 hexadecimal digits, with hyphens between as one likes.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.bytes().filter(|&byte| byte != b'-');
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = hexadecimal(&[digits.next()?, digits.next()?])?;
    }
    digits.next().is_none().then_some(uuid)
}

/// Undoes percent-encoding; a `%` without two digits stands for itself.
pub fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        match (first, after.first_chunk().and_then(hexadecimal)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

fn hexadecimal(digits: &[u8; 2]) -> Option<u8> {
    u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// How the first program is started.
#[derive(Default)]
pub struct Run {
    /// Its arguments, its name first.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment.
    pub environment: Vec<Vec<u8>>,
    /// Where it starts.
    pub directory: Vec<u8>,
    /// Its user and group, if it is not to be root.
    pub user: Option<(u32, u32)>,
    /// Its further groups.
    pub groups: Vec<u32>,
    /// The capabilities that programs can get, if not all.
    pub capabilities: Option<u64>,
    /// Whether exec grants them none.
    pub gains_nothing: bool,
    /// What is set before it starts.
    pub settings: Settings,
    /// What the host has for its input and output.
    pub host: Option<Host>,
}

impl Run {
    /// Reads the file out of the boot archives, the last that has it; defaults if there is
    /// none.
    ///
    /// A record that makes no sense is none to go on without: `None`, for a program with more rights than its user said is
    /// worse than none.
    pub fn from_archives(archives: &[&'static [u8]]) -> Option<Self> {
        let file = archives.iter().rev().find_map(|archive| {
            let mut members = cpio::Archive::new(archive).filter_map(Result::ok);
            members.find(|member| member.name.ends_with(b".sietch/run"))
        });
        file.map_or_else(|| Some(Self::default()), |file| Self::parse(file.data))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut run = Self::default();
        let mut window = (0, 0);
        for record in text.split(|&byte| byte == 0) {
            let Some(at) = record.iter().position(|&byte| byte == b'=') else {
                continue;
            };
            let (key, value) = (&record[..at], &record[at + 1..]);
            match key {
                b"arg" => run.arguments.push(value.to_vec()),
                b"env" => run.environment.push(value.to_vec()),
                b"cwd" => run.directory = value.to_vec(),
                b"user" => run.user = Some(parse_user(value)?),
                b"group" => run.groups.push(parse_number(value)?),
                b"caps" => run.capabilities = Some(parse_mask(value)?),
                b"rlimit" => run.settings.limits.push(parse_limit(value)?),
                b"sysctl" => run.settings.values.push(parse_setting(value)?),
                b"nnp" => run.gains_nothing = value == b"1",
                b"umask" => run.settings.umask = Some(parse_mode(value)?),
                b"tty" => run.host = Some(Host::SerialTerminal),
                b"stdio" => run.host = ports(value, window),
                b"window" => window = parse_window(value).unwrap_or_default(),
                _ => {}
            }
        }
        Some(run)
    }
}

/// One letter for each descriptor.
fn ports(letters: &[u8], (rows, columns): (u16, u16)) -> Option<Host> {
    let mut files = [HostFile::Stream; 3];
    for (file, letter) in files.iter_mut().zip(letters) {
        *file = match letter {
            b't' => HostFile::Terminal,
            b's' => HostFile::Stream,
            b'o' => HostFile::SameAsOutput,
            _ => return None,
        };
    }
    Some(Host::Ports {
        files,
        rows,
        columns,
    })
}

fn parse_user(text: &[u8]) -> Option<(u32, u32)> {
    let (uid, gid) = core::str::from_utf8(text).ok()?.split_once(':')?;
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

fn parse_number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn parse_mode(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(core::str::from_utf8(text).ok()?, 8).ok()
}

fn parse_mask(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok()
}

/// `NUMBER:SOFT:HARD`, the number Linux's.
fn parse_limit(text: &[u8]) -> Option<(Resource, Limit)> {
    let mut parts = core::str::from_utf8(text).ok()?.split(':');
    let resource = Resource::from_number(parts.next()?.parse().ok()?)?;
    let (soft, hard) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((resource, Limit { soft, hard }))
}

fn parse_setting(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = text.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (text.get(..at)?, text.get(at + 1..)?);
    Some((name.to_vec(), value.to_vec()))
}

fn parse_window(text: &[u8]) -> Option<(u16, u16)> {
    let (rows, columns) = core::str::from_utf8(text).ok()?.split_once('x')?;
    Some((rows.parse().ok()?, columns.parse().ok()?))
}
