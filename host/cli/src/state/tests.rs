//! Folders that go, or stay because somebody else has them by now.

use super::*;

/// Always there, and not this one.
const FIRST_PROCESS: u32 = 1;

/// A base of its own for each test.
struct Base(PathBuf);

impl Base {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("sietch-state-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder in which that process starts a machine.
    fn folder(&self, owner: u32) -> Folder {
        let folder = Folder(self.0.join("db"));
        fs::create_dir_all(folder.path()).unwrap();
        fs::write(folder.path().join(OWNER), processes::told(owner)).unwrap();
        folder
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_in_which_another_process_starts_a_machine_is_not_taken() {
    let base = Base::new("started");
    let folder = base.folder(FIRST_PROCESS);
    assert!(!folder.make_fresh().unwrap());
    assert!(!folder.remove_if(Folder::is_abandoned).unwrap());
    assert!(folder.path().join(OWNER).exists());
    assert_eq!(fs::read_dir(&base.0).unwrap().count(), 1, "no draft");
}

#[test]
fn what_changes_settings_ends_before_the_folder_goes() {
    let base = Base::new("meant");
    let folder = base.folder(0);
    let locked = folder.lock().unwrap();
    std::thread::scope(|scope| {
        let removed = scope.spawn(|| folder.remove_if(|folder| folder.console_log().exists()));
        fs::write(folder.console_log(), "the last words").unwrap();
        drop(locked);
        assert!(removed.join().unwrap().unwrap());
    });
}

#[test]
fn what_is_removed_leaves_nothing() {
    let base = Base::new("removed");
    let folder = base.folder(0);
    assert!(!folder.remove_if(|_| false).unwrap());
    assert!(folder.path().exists());
    assert!(folder.remove_if(|_| true).unwrap());
    assert!(folder.remove_if(|_| true).unwrap(), "it is gone as well");
    assert_eq!(fs::read_dir(&base.0).unwrap().count(), 0);
}

#[test]
fn a_fresh_folder_takes_the_place_of_one_of_a_process_that_is_gone() {
    let base = Base::new("gone");
    let folder = base.folder(0);
    fs::write(folder.console_log(), "old").unwrap();
    assert!(folder.make_fresh().unwrap());
    assert!(!folder.console_log().exists());
    assert_eq!(fs::read_dir(&base.0).unwrap().count(), 1, "no draft");
}
