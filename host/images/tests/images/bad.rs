//! Bad images: each is one sentence, and nothing of it stays.

use std::fs;

use crate::support::{Folder, Layer, Layout, files_below, root};
use images::Error;
use serde_json::json;
use tar::EntryType;

/// What the store holds when it holds nothing.
const NOTHING: [&str; 1] = ["lock"];

fn layer_of(layout: &Layout) -> std::path::PathBuf {
    let text = fs::read_to_string(layout.path().join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&text).unwrap();
    let manifest = layout.blob_path(index["manifests"][0]["digest"].as_str().unwrap());
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(manifest).unwrap()).unwrap();
    layout.blob_path(manifest["layers"][0]["digest"].as_str().unwrap())
}

fn good() -> Layout {
    Layout::of(vec![Layer::new().file("a", &[7; 5000])])
}

/// Fails unless `said` is in the sentence.
fn expect(sentence: &str, said: &str) {
    assert!(sentence.contains(said), "{sentence}");
}

/// The sentence, after which the store holds blobs at most that have a name.
fn sentence(result: Result<impl Sized, Error>) -> String {
    match result {
        Ok(_) => panic!("it was taken"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.ends_with('.') && !text.contains('\n'), "{text}");
            text
        }
    }
}

#[test]
fn a_blob_that_is_not_what_its_digest_says_is_refused() {
    let layout = good();
    let path = layer_of(&layout);
    let mut bytes = fs::read(&path).unwrap();
    bytes[600] ^= 1;
    fs::write(&path, &bytes).unwrap();
    expect(&sentence(layout.fetch()), "is damaged (it is sha256:");
    fs::write(&path, &bytes[..900]).unwrap();
    expect(&sentence(layout.fetch()), "it has 900 of");
    bytes.push(0);
    fs::write(&path, &bytes).unwrap();
    expect(&sentence(layout.fetch()), "it has more than");
    assert_eq!(files_below(layout.store().path()), NOTHING);
}

#[test]
fn a_layer_that_is_missing_is_named() {
    let layout = good();
    fs::remove_file(layer_of(&layout)).unwrap();
    expect(&sentence(layout.fetch()), "lacks the blob sha256:");
    assert_eq!(files_below(layout.store().path()), NOTHING);
}

#[test]
fn an_image_for_another_processor_is_refused() {
    let mut layout = Layout::new();
    layout.architecture = "riscv64";
    let layer = Layer::new().file("a", b"").bytes();
    layout.index(&[layout.image(&[(layer.clone(), layer)])]);
    expect(&sentence(layout.fetch()), "is for linux/riscv64");
    assert!(!layout.store().path().join("index.json").exists());
}

#[test]
fn documents_that_are_none_are_refused() {
    let layout = good();
    fs::write(layout.path().join("index.json"), "{").unwrap();
    expect(&sentence(layout.fetch()), "its index.json cannot be read");
    let manifest = layout.blob("application/vnd.oci.image.manifest.v1+json", b"[]");
    layout.index(&[manifest]);
    expect(&sentence(layout.fetch()), "its manifest cannot be read");
    layout.index(&[json!({"mediaType": "", "digest": "sha256:../../x", "size": 1})]);
    expect(&sentence(layout.fetch()), "is not a SHA-256 digest");
    fs::remove_file(layout.path().join("oci-layout")).unwrap();
    expect(&sentence(layout.fetch()), "no file oci-layout");
    fs::remove_dir_all(layout.path()).unwrap();
    expect(&sentence(layout.fetch()), "no such folder");
}

/// A layer that is what its digest says and cannot be unpacked.
fn unpacking(layers: Vec<Vec<u8>>) -> String {
    let layout = Layout::new();
    let layers: Vec<_> = layers
        .into_iter()
        .map(|bytes| (bytes.clone(), bytes))
        .collect();
    layout.index(&[layout.image(&layers)]);
    let text = sentence(layout.root());
    assert!(text.starts_with("The layer sha256:"), "{text}");
    assert!(files_below(&layout.store().path().join("roots")).is_empty());
    text
}

#[test]
fn a_path_that_climbs_out_is_refused() {
    let climbs = "climbs out of the image";
    for path in ["../x", "a/../../x", "/../x"] {
        expect(
            &unpacking(vec![Layer::new().file(path, b"x").bytes()]),
            climbs,
        );
    }
    let link = Layer::new().hard_link("passwd", "../../etc/passwd").bytes();
    expect(&unpacking(vec![link]), climbs);
}

#[test]
fn archives_that_are_damaged_are_refused() {
    let whole = Layer::new().file("a", &[7; 5000]).bytes();
    unpacking(vec![whole[..3000].to_vec()]);
    unpacking(vec![vec![7; 1024]]);
    // What begins as gzip does and is something else.
    unpacking(vec![[&[0x1f, 0x8b][..], &[7; 1024]].concat()]);
    unpacking(vec![[&[0x28, 0xb5, 0x2f, 0xfd][..], &[7; 1024]].concat()]);
    let link = Layer::new().hard_link("b", "a").bytes();
    expect(&unpacking(vec![link]), "which is not there");
    let circle = Layer::new()
        .symlink("a", "b")
        .symlink("b", "a")
        .file("a/x", b"");
    expect(&unpacking(vec![circle.bytes()]), "circle");
    let unknown = Layer::new().entry(EntryType::new(b'Z'), "a", "", b"");
    expect(&unpacking(vec![unknown.bytes()]), "unknown kind");
    let attribute = Layer::new()
        .pax("SCHILY.xattr.user.a", &"x".repeat(9000))
        .file("a", b"");
    expect(
        &unpacking(vec![attribute.bytes()]),
        "attributes are too long",
    );
}

#[test]
fn a_layer_that_is_not_the_one_of_the_configuration_is_refused() {
    let layout = Layout::new();
    let (one, other) = (
        Layer::new().file("a", b"1").bytes(),
        Layer::new().file("a", b"2").bytes(),
    );
    layout.index(&[layout.image(&[(one, other)])]);
    expect(&sentence(layout.root()), "it unpacks to sha256:");
}

#[test]
fn a_blob_that_the_hosts_disk_damaged_is_found_and_copied_anew() {
    let layout = good();
    let (_, image) = layout.fetch().unwrap();
    let store = layout.store();
    let layer = store
        .path()
        .join("blobs/sha256")
        .join(image.manifest.layers[0].digest.hex());
    let mut bytes = fs::read(&layer).unwrap();
    bytes[600] ^= 1;
    fs::write(&layer, bytes).unwrap();
    expect(&sentence(root(&store, &image)), "of the store is damaged");
    assert!(layout.root().is_ok());
}

#[test]
fn what_a_killed_command_left_is_removed_by_the_next() {
    let layout = good();
    let blobs = layout.store().path().join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join(".new-x"), b"half").unwrap();
    layout.fetch().unwrap();
    assert!(!blobs.join(".new-x").exists());
}

#[test]
fn a_full_disk_is_a_sentence_and_takes_nothing() {
    let layout = good();
    let store = Folder::new();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3M", "tmpfs"])
        .arg(&store.0)
        .output()
        .unwrap();
    if !mounted.status.success() {
        eprintln!("SKIP: only root can make a small file system");
        return;
    }
    let full = images::Store::new(store.0.join("images"));
    let noise: Vec<u8> = (0..4_000_000u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let large = Layout::of(vec![Layer::new().file("large", &noise)]);
    let copied = full.fetch(&large.reference(), &mut |_, _, _| {});
    let (_, small) = full.fetch(&layout.reference(), &mut |_, _, _| {}).unwrap();
    let fits = root(&full, &small).map(drop);
    // Blobs that fit, and a disk that does not.
    let zeroes = Layout::new();
    let layer = Layer::new().file("large", &[&noise[..1 << 21], &noise[..1 << 21]].concat());
    let layer = layer.bytes();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &layer).unwrap();
    let packed = encoder.finish().unwrap();
    zeroes.index(&[zeroes.image(&[(layer, packed)])]);
    let unpacked = full
        .fetch(&zeroes.reference(), &mut |_, _, _| {})
        .and_then(|(_, image)| root(&full, &image).map(drop));
    let left = files_below(&store.0);
    let unmounted = std::process::Command::new("umount")
        .arg("-l")
        .arg(&store.0)
        .status();
    assert!(unmounted.unwrap().success());
    expect(&sentence(copied), "no room left");
    expect(&sentence(unpacked), "no room left");
    fits.unwrap();
    assert!(
        left.iter().all(|name| !name.starts_with(".new-")),
        "{left:?}"
    );
}
