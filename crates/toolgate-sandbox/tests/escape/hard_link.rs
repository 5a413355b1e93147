//! A hard link to a file outside is that file under a name inside: no path check can tell. What keeps the target safe is
//! that a change replaces the name instead of writing through it; reading is what whoever made the link could do.

use crate::{SECRET, with_each_way};

#[test]
fn a_hard_link_reads_as_the_file_that_it_is() {
    with_each_way(|scene, way| {
        std::fs::hard_link(scene.outside().join("secret"), scene.workspace().join("hard")).unwrap();
        assert_eq!(scene.read(way, "hard").unwrap(), SECRET, "known and documented: the link's maker could read it");
    });
}
