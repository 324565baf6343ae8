//! Container images as a user meets them: what is wrong with one is a sentence with the way out.

mod scene;

use scene::Scene;

impl Scene {
    /// Its only line on standard error.
    fn complaint(&self, args: &[&str], status: i32) -> String {
        let output = self.sietch(args).output().expect("sietch starts");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }
}

#[test]
fn an_image_that_is_not_there_is_a_sentence() {
    let scene = Scene::new("images-none");
    let folder = scene.complaint(&["run", "oci:/nowhere:7"], 125);
    assert!(folder.contains("no image /nowhere"), "{folder}");
    let archive = scene.complaint(&["pull", "docker-archive:/nowhere.tar"], 125);
    assert!(archive.contains("no such file"), "{archive}");
    let name = scene.complaint(&["rmi", "nowhere"], 125);
    assert!(name.contains("`sietch images` lists"), "{name}");
    let form = scene.complaint(&["pull", "docker://nowhere"], 125);
    assert!(form.contains("docker://HOST/NAME"), "{form}");
}

#[test]
fn a_registry_that_does_not_answer_is_a_sentence() {
    let scene = Scene::new("images-registry");
    let closed = scene.complaint(&["pull", "docker://127.0.0.1:1/redis"], 125);
    assert!(
        closed.contains("The registry 127.0.0.1:1 says nothing"),
        "{closed}"
    );
}

#[test]
fn a_name_that_is_neither_program_nor_image_is_not_found_and_one_with_a_tag_is_an_image() {
    let scene = Scene::new("images-bare");
    let bare = scene.complaint(&["run", "no-such-thing"], 127);
    assert!(
        bare.contains("neither a program of this host nor an image"),
        "{bare}"
    );
    let tagged = scene.complaint(&["run", "no-such-thing:7"], 125);
    assert!(
        tagged.contains("There is no image no-such-thing:7"),
        "{tagged}"
    );
    assert!(
        tagged.contains("`sietch pull docker://HOST/NAME`"),
        "{tagged}"
    );
}

#[test]
fn a_program_of_the_host_has_no_entry_point() {
    let scene = Scene::new("images-entry");
    let entry = scene.complaint(&["run", "--entrypoint", "sh", "true"], 125);
    assert!(entry.contains("has no entry point"), "{entry}");
}

#[test]
fn a_store_with_nothing_in_it_lists_nothing() {
    let scene = Scene::new("images-empty");
    let output = scene.sietch(&["images"]).output().expect("sietch starts");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}
