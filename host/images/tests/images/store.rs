//! Names and blobs that images share.

use std::fs;

use crate::support::{Layer, Layout, files_below, root};
use images::{Name, Reference};
use serde_json::json;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Two images with a layer in common.
fn two() -> Layout {
    let layout = Layout::new();
    let base = Layer::new().file("base", b"base").bytes();
    let more = Layer::new().file("more", b"more").bytes();
    let tagged = |mut image: serde_json::Value, tag: &str| {
        image["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        image
    };
    let one = layout.image(&[(base.clone(), base.clone())]);
    let other = layout.image(&[(base.clone(), base), (more.clone(), more)]);
    layout.index(&[tagged(one, "one"), tagged(other, "other")]);
    layout
}

fn reference(layout: &Layout, tag: &str) -> Reference {
    format!("oci:{}:{tag}", layout.path().display())
        .parse()
        .unwrap()
}

#[test]
fn images_share_blobs_and_what_nobody_needs_goes_with_the_last_name() {
    let layout = two();
    let store = layout.store();
    let fetch = |tag| {
        store
            .fetch(&reference(&layout, tag), &mut |_, _, _| {})
            .unwrap()
    };
    let (_, one) = fetch("one");
    let (_, other) = fetch("other");
    let names: Vec<_> = store
        .list()
        .unwrap()
        .into_iter()
        .map(|listed| listed.name)
        .collect();
    assert_eq!(names, [name("img:one"), name("img:other")]);
    let blobs = store.path().join("blobs/sha256");
    // Two manifests, two configurations, two layers.
    assert_eq!(files_below(&blobs).len(), 6);
    assert_eq!(one.manifest.layers[0], other.manifest.layers[0]);
    drop((root(&store, &one).unwrap(), root(&store, &other).unwrap()));
    store.remove("img:other").unwrap();
    assert_eq!(files_below(&blobs).len(), 3);
    assert_eq!(files_below(&store.path().join("roots")).len(), 1);
    store.remove(&one.id.hex()[..6]).unwrap();
    assert_eq!(
        files_below(store.path()),
        ["index.json", "lock", "oci-layout"]
    );
    assert!(store.remove("img:one").is_err());
}

#[test]
fn an_image_that_a_machine_uses_is_not_removed() {
    let layout = Layout::of(vec![Layer::new().file("a", b"")]);
    let (called, image) = layout.fetch().unwrap();
    let store = layout.store();
    let held = root(&store, &image).unwrap();
    let refused = store.remove(called.as_str()).unwrap_err().to_string();
    assert!(refused.contains("is used by a machine"), "{refused}");
    drop(held);
    store.remove(called.as_str()).unwrap();
}

#[test]
fn an_image_is_found_by_its_name_afterwards() {
    let layout = Layout::of(vec![Layer::new().file("a", b"")]);
    let (called, image) = layout.fetch().unwrap();
    assert_eq!(called, name("img"));
    fs::remove_dir_all(layout.path()).unwrap();
    let (_, again) = layout
        .store()
        .fetch(&Reference::Stored(called), &mut |_, _, _| {})
        .unwrap();
    assert_eq!(again.id, image.id);
    assert_eq!(again.configuration.config.cmd, ["/bin/it"]);
}

#[test]
fn a_layout_with_several_images_says_which_there_are() {
    let layout = two();
    let several = layout.fetch().unwrap_err().to_string();
    assert!(several.contains("one, other"), "{several}");
    let missing = layout
        .store()
        .fetch(&reference(&layout, "third"), &mut |_, _, _| {});
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.contains("no image third") && missing.contains("one, other"),
        "{missing}"
    );
}

#[test]
fn of_an_index_the_image_for_this_processor_is_taken() {
    let layout = Layout::new();
    let layer = Layer::new().file("a", b"").bytes();
    let mut ours = layout.image(&[(layer.clone(), layer)]);
    let mut other = layout.blob("application/vnd.oci.image.manifest.v1+json", b"{}");
    other["platform"] = json!({"architecture": "arm64", "os": "linux"});
    ours["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let index = |images: serde_json::Value| {
        let text = json!({"schemaVersion": 2, "manifests": images}).to_string();
        layout.blob("application/vnd.oci.image.index.v1+json", text.as_bytes())
    };
    layout.index(&[index(json!([other, ours]))]);
    assert_eq!(layout.fetch().unwrap().1.id.to_string(), ours["digest"]);
    layout.index(&[index(json!([other]))]);
    let wrong = layout.fetch().unwrap_err().to_string();
    assert!(
        wrong.contains("linux/arm64") && wrong.contains("linux/amd64"),
        "{wrong}"
    );
}
