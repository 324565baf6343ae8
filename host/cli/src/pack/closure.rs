//! Finds the libraries that an ELF file needs, and those that these need, in the
//! order in which the loader would search (ld.so(8), "DESCRIPTION").

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::elf::{self, Needs};
use super::ld_cache::LdCache;
use super::{Image, PackError, shell};

/// Where glibc's loader looks last, in Debian's build and in others.
const GLIBC_FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// Where musl's loader looks.
const MUSL_FOLDERS: [&str; 4] = [
    "/lib",
    "/usr/local/lib",
    "/usr/lib",
    "/usr/lib/x86_64-linux-musl",
];

/// Libraries that glibc opens by name when a program first resolves a name or
/// cancels a thread; no header mentions them.
const OPENED_BY_GLIBC: [&str; 4] = [
    "libnss_files.so.2",
    "libnss_dns.so.2",
    "libresolv.so.2",
    "libgcc_s.so.1",
];

/// Adds ELF files with their closure to an image.
pub struct Closure<'a> {
    image: &'a mut Image,
    cache: LdCache,
    seen: HashSet<PathBuf>,
}

/// Whether a missing library is an error or the library is an optional extra.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Report what is missing.
    Required,
    /// Leave out what is missing.
    BestEffort,
}

impl<'a> Closure<'a> {
    /// A closure that adds to `image` and asks this host's library cache.
    pub fn new(image: &'a mut Image) -> Self {
        Self {
            image,
            cache: LdCache::of_host(),
            seen: HashSet::new(),
        }
    }

    /// Adds the program at `path` with its loader and libraries.
    pub fn add_program(&mut self, path: &Path) -> Result<(), PackError> {
        self.add_needs(path)?;
        self.image.add_same(path)
    }

    /// Adds the loader and the libraries of the program at `path`, which itself will
    /// lie elsewhere.
    pub fn add_needs(&mut self, path: &Path) -> Result<(), PackError> {
        let bytes = fs::read(path).map_err(PackError::unreadable(path))?;
        let needs = elf::needs(path, &bytes)?;
        self.look_for_shell(path, &bytes, &needs);
        let Some(interpreter) = needs.interpreter.as_deref() else {
            return self.add_libraries(path, &needs, false, Strictness::BestEffort);
        };
        if !Path::new(interpreter).exists() {
            return Err(PackError::InterpreterNotFound {
                interpreter: interpreter.into(),
                wanted_by: path.into(),
            });
        }
        self.image.add_same(Path::new(interpreter))?;
        let is_musl = interpreter.contains("ld-musl");
        self.add_libraries(path, &needs, is_musl, Strictness::Required)?;
        if !is_musl {
            for library in OPENED_BY_GLIBC {
                if let Some(found) = self.search(library, path, &Needs::default(), false) {
                    self.add_file(&found, false, Strictness::BestEffort)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a file that the program will open by itself, such as a plug-in, with
    /// those of its libraries that exist.
    pub fn add_plugin(&mut self, path: &Path) -> Result<(), PackError> {
        self.add_file(path, false, Strictness::BestEffort)
    }

    fn add_file(
        &mut self,
        path: &Path,
        is_musl: bool,
        strictness: Strictness,
    ) -> Result<(), PackError> {
        if !self.seen.insert(path.to_path_buf()) {
            return Ok(());
        }
        self.image.add_same(path)?;
        let bytes = fs::read(path).map_err(PackError::unreadable(path))?;
        match elf::needs(path, &bytes) {
            Ok(needs) => {
                self.look_for_shell(path, &bytes, &needs);
                self.add_libraries(path, &needs, is_musl, strictness)
            }
            Err(_) if strictness == Strictness::BestEffort => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Remembers that the file calls a shell.
    fn look_for_shell(&mut self, path: &Path, bytes: &[u8], needs: &Needs) {
        if shell::is_called(path, bytes, needs) {
            self.image.note_shell_caller();
        }
    }

    /// Adds the libraries that the file at `path` needs. Libraries nest a few deep,
    /// and none is visited twice.
    fn add_libraries(
        &mut self,
        path: &Path,
        needs: &Needs,
        is_musl: bool,
        strictness: Strictness,
    ) -> Result<(), PackError> {
        for library in &needs.libraries {
            // musl's loader is the C library itself.
            if is_musl && library.starts_with("libc.") {
                continue;
            }
            match self.search(library, path, needs, is_musl) {
                Some(found) => self.add_file(&found, is_musl, strictness)?,
                None if strictness == Strictness::BestEffort => {}
                None => {
                    return Err(PackError::LibraryNotFound {
                        library: library.clone(),
                        wanted_by: path.into(),
                    });
                }
            }
        }
        Ok(())
    }

    fn search(&self, library: &str, user: &Path, needs: &Needs, is_musl: bool) -> Option<PathBuf> {
        if library.contains('/') {
            return Some(PathBuf::from(library)).filter(|path| path.exists());
        }
        // DT_RUNPATH, where there is one, takes the place of DT_RPATH.
        let own = if needs.runpath.is_empty() {
            &needs.rpath
        } else {
            &needs.runpath
        };
        let own = own.iter().map(|folder| expand_origin(folder, user));
        let own = own
            .map(|folder| folder.join(library))
            .find(|path| path.exists());
        let cached = || {
            self.cache
                .find(library)
                .filter(|path| path.exists())
                .cloned()
        };
        let in_folders = |folders: &[&str]| {
            folders
                .iter()
                .map(|folder| Path::new(folder).join(library))
                .find(|path| path.exists())
        };
        match is_musl {
            true => own.or_else(|| in_folders(&MUSL_FOLDERS)),
            false => own.or_else(cached).or_else(|| in_folders(&GLIBC_FOLDERS)),
        }
    }
}

/// Replaces `$ORIGIN` with the folder of the file that says it.
fn expand_origin(folder: &str, user: &Path) -> PathBuf {
    let real = fs::canonicalize(user).unwrap_or_else(|_| user.to_path_buf());
    let origin = real.parent().unwrap_or(Path::new("/")).to_string_lossy();
    PathBuf::from(
        folder
            .replace("${ORIGIN}", &origin)
            .replace("$ORIGIN", &origin),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_comes_with_its_loader_and_libraries() {
        let mut image = Image::new();
        let path = std::env::current_exe().expect("we run");
        Closure::new(&mut image)
            .add_program(&path)
            .expect("our libraries are there");
        let has = |name: &str| image.paths().any(|path| path.ends_with(name));
        assert!(has("ld-linux-x86-64.so.2"));
        assert!(has("libc.so.6"));
        assert!(has("libresolv.so.2"));
        assert!(image.resolve(&path).is_some());
    }

    #[test]
    fn origin_is_the_folder_of_the_user() {
        assert_eq!(
            expand_origin("$ORIGIN/../lib", Path::new("/opt/none/bin/x")),
            PathBuf::from("/opt/none/bin/../lib")
        );
    }
}
