//! `sietch build -t NAME`: a program of this host, packed with what it needs, as an image of the store.

use cpio::{Archive, Kind};
use images::{Image, Name, Process};
use tar::{Builder, EntryType, Header};

use super::of_user;
use crate::failure::Failure;
use crate::flags::ProgramFlags;
use crate::machine_plan::host_start;
use crate::pack::Packed;

/// Makes it.
///
/// Errors: what packing says, and the store.
pub fn build(name: &Name, flags: &ProgramFlags) -> Result<Image, Failure> {
    let mut packed = Packed::new(flags.program())?;
    packed.add_all(&flags.add)?;
    let start = host_start(flags, &packed)?;
    let process = Process {
        user: start
            .user
            .map_or_else(String::new, |(uid, gid)| format!("{uid}:{gid}")),
        env: start.environment,
        entrypoint: vec![packed.path.to_string_lossy().into_owned()],
        cmd: start.arguments.into_iter().skip(1).collect(),
        working_dir: start.folder,
        ..Process::default()
    };
    let layer = layer(&packed.image.to_cpio()?).map_err(Failure::file(name.as_str()))?;
    Ok(of_user()?.build(name, layer, process)?)
}

/// The packed files as a layer's archive.
fn layer(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for entry in Archive::new(packed) {
        let entry = entry.map_err(|error| std::io::Error::other(format!("{error:?}")))?;
        let path = String::from_utf8_lossy(entry.name).into_owned();
        let mut header = Header::new_gnu();
        header.set_mode(entry.mode & 0o7777);
        header.set_uid(entry.uid.into());
        header.set_gid(entry.gid.into());
        header.set_mtime(entry.mtime_s.into());
        header.set_size(0);
        match entry.kind() {
            Kind::Symlink => {
                header.set_entry_type(EntryType::Symlink);
                let target = String::from_utf8_lossy(entry.data).into_owned();
                builder.append_link(&mut header, path, target)?;
            }
            Kind::Directory => {
                header.set_entry_type(EntryType::Directory);
                builder.append_data(&mut header, path, &[][..])?;
            }
            _ => {
                header.set_entry_type(EntryType::Regular);
                header.set_size(entry.data.len() as u64);
                builder.append_data(&mut header, path, entry.data)?;
            }
        }
    }
    builder.into_inner()
}
