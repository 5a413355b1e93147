//! Definitions that are found, in each language: name, first line and last line, counted from 1.

use super::{Lines, outline};
use crate::language::{LANGUAGES, language_of};

fn found(path: &str, text: &str) -> Vec<String> {
    let lines = Lines::new(text);
    let definitions = outline(&LANGUAGES[language_of(path)], &lines);
    definitions.iter().map(|found| format!("{} {}-{}", &text[found.name.clone()], found.first + 1, found.end)).collect()
}

#[test]
fn definitions_by_language() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.rs",
            "/// Doc.\n#[test]\npub(crate) async fn one<T>(a: &'a str) -> u8 {\n    let s = \"}\"; // }\n    r#\"}\"#;\n}\n\n\
             impl<T: Into<U>> From<T> for Two {\n    const fn three() {}\n}\nmacro_rules! four {\n    () => {};\n}\npub struct Five;\n",
            &["one 1-6", "Two 8-10", "three 9-9", "four 11-13", "Five 14-14"],
        ),
        (
            "a.py",
            "@decorated\nclass One(Base):\n    \"\"\"Doc.\n\n    def no(): pass\n    \"\"\"\n\n    async def two(\n        self,\n    ):\n        return 1\n\n\ndef three():\n    pass\n",
            &["One 1-11", "two 8-11", "three 14-15"],
        ),
        (
            "a.go",
            "// One does.\nfunc One(a int) error {\n\tif a > 0 {\n\t}\n\treturn nil\n}\n\nfunc (r *Two) Three() {}\n\ntype Two struct {\n\tA int\n}\n\ntype Four []string\n\nvar x = 1\n",
            &["One 1-6", "Three 8-8", "Two 10-12", "Four 14-14"],
        ),
        (
            "a.ts",
            "export class One<T> {\n  private two(a: string): void {\n    if (a) {\n    }\n  }\n}\nexport const three = async (a) => {\n  return `}`;\n};\nfunction four() {}\nexport interface Five {\n  a: string;\n}\n",
            &["One 1-6", "two 2-5", "three 7-9", "four 10-10", "Five 11-13"],
        ),
        (
            "A.java",
            "@Entity\npublic class One extends Base {\n  private int a = call(3);\n\n  public One(int a) {\n    this.a = a;\n  }\n\n  /** Doc. */\n  List<String> two(int a)\n      throws E {\n    for (;;) {}\n  }\n}\n",
            &["One 1-14", "One 5-7", "two 9-13"],
        ),
        (
            "a.c",
            "#include <a.h>\nint declared(int a);\n\nstatic int one(char c)\n{\n  if (c == '{') { return 1; }\n}\n\nstruct two {\n  int a;\n};\n",
            &["one 4-7", "two 9-11"],
        ),
        (
            "a.cpp",
            "namespace one {\ntemplate <typename T>\nclass Two : public Base {\n public:\n  int three() const { return 1; }\n};\nvoid Two::four(int a) {\n}\n}\n",
            &["one 1-9", "Two 3-6", "three 5-5", "four 7-8"],
        ),
        (
            "a.cs",
            "namespace One\n{\n    public sealed record Two(int A)\n    {\n        public async Task<int> Three(int a)\n        {\n            return a;\n        }\n    }\n}\n",
            &["One 1-10", "Two 3-9", "Three 5-8"],
        ),
        (
            "a.rb",
            "module One\n  # Doc.\n  def self.two(a)\n    a\n  end\n\n  class Three\n  end\nend\n",
            &["One 1-9", "two 2-5", "Three 7-8"],
        ),
        (
            "a.php",
            "<?php\nabstract class One {\n  public static function two($a) {\n    return '}';\n  }\n}\n",
            &["One 2-6", "two 3-5"],
        ),
        ("a.sh", "one() {\n  echo hi\n}\n\nfunction two {\n  one\n}\n", &["one 1-3", "two 5-7"]),
        (
            "a.md",
            "# One\n\ntext\n\n## Two\n\n```sh\n# not a heading\n```\n\n# Three\n",
            &["One 1-10", "Two 5-10", "Three 11-11"],
        ),
        ("a.rst", "One\n===\n\ntext\n\nTwo\n---\n\ntext\n", &["One 1-9", "Two 6-9"]),
        ("a.txt", "fn one() {}\n", &[]),
    ];
    for (path, text, expected) in cases {
        assert_eq!(found(path, text), *expected, "{path}");
    }
}

#[test]
fn any_text_is_scanned_without_a_panic() {
    for path in ["a.rs", "a.py", "a.js", "a.c", "a.rb", "a.md", "a.php", "a.go", "a.sh", "a.ex"] {
        for text in [
            "",
            "\n",
            "}",
            "}}}\n{",
            "fn",
            "fn ",
            "def é",
            "class 中 {",
            "'",
            "'\\",
            "\"\\",
            "r#\"",
            "/*",
            "`",
            "impl",
            "impl<",
            "func (",
            "#",
            "=\n=",
            "end",
            "é(",
            "macro_rules!",
        ] {
            found(path, text);
        }
    }
}
