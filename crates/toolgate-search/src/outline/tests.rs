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

/// Declarations that a scan by line gets wrong easily.
#[test]
fn hard_definitions_by_language() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "A.java",
            "@SuppressWarnings(\"x\")\n@interface Marker {}\ninterface Shape {\n  double area(int scale);\n  /* name(x) */\n}\nclass B {\n  void run() {\n    call(3);\n    use(new Shape() {\n      @Override public double area(int scale) {\n        return 1;\n      }\n    });\n    class Local {}\n  }\n  String s = \"\"\"\n    {\n    \"\"\";\n  void next() {}\n}\n",
            &["Marker 1-2", "Shape 3-6", "area 4-4", "B 7-21", "run 8-16", "area 11-13", "Local 15-15", "next 20-20"],
        ),
        (
            "a.c",
            "/* apply(x) is above; a { here */\n#define MAX(a, b) \\\n  ((a) > (b))\ntypedef struct {\n  int a;\n} point;\n#ifdef A\nint one(void) {\n#else\nint one(int a) {\n#endif\n  return 1;\n}\nstruct point *two(struct point *p) {\n  struct point q = { 1 };\n  return p;\n}\n",
            &["point 4-6", "one 8-9", "one 10-13", "two 14-17"],
        ),
        (
            "a.cpp",
            "extern \"C\" int one(int a) { return a; }\nenum class Two { A, B };\ntemplate <template <typename> class T>\nvoid three() {}\nstruct Four {\n  bool operator==(const Four& other) const { return true; }\n};\n",
            &["one 1-1", "Two 2-2", "three 4-4", "Four 5-7", "operator== 6-6"],
        ),
        (
            "a.cs",
            "namespace One.Two\n{\n    [Fact, Named(\"a(b)\")]\n    public class Three\n    {\n        [Fact]\n        public void Four()\n        {\n            var s = @\"{ \"\" C:\\\";\n        }\n#if A\n        void Five() {\n#else\n        void Five(int a) {\n#endif\n        }\n        public int Six(int a) => a + 1;\n        T Seven<T>(T a)\n        {\n        }\n    }\n}\n",
            &["Two 1-22", "Three 3-21", "Four 6-10", "Five 12-13", "Five 14-16", "Six 17-17", "Seven 18-20"],
        ),
        (
            "a.kt",
            "@Test fun one() {\n  val inner = 1\n}\nactual inline fun <T> List<T>.two(a: Int): Int =\n  a + 1\nfun three() = 3\nenum class Four { A }\nfun `does five`() {}\nval six = 6\n",
            &["one 1-3", "two 4-5", "three 6-6", "Four 7-7", "does five 8-8", "six 9-9"],
        ),
        (
            "a.dart",
            "/// Tests that one(two) is.\nclass One {\n  One._(this.a);\n  int get two => 2;\n  Future<T> three<T>(T a) =>\n      Future.value(a);\n  void four() {\n    call();\n  }\n}\n",
            &["One 1-10", "two 4-4", "three 5-6", "four 7-9"],
        ),
        (
            "a.ts",
            "const lib = require('lib');\nexport type One =\n  | 'a'\n  | 'b';\nfunction two(\n  a: string = {},\n): void {\n  return {\n    three(b) {\n      if (b) {\n      }\n      call(b, () => {\n      });\n    },\n  };\n}\ndescribe('four', () => {\n  it(\"does five\", () => {\n  });\n});\n",
            &["One 2-4", "two 5-16", "three 9-14", "four 17-20", "does five 18-19"],
        ),
        (
            "a.js",
            "res.one = function one(a) {\n  var b = function () {\n  };\n  this.no = () => {\n  };\n};\nexports.two = async (a, b) =>\n  a + b;\n\nOne.prototype.three = a => {\n};\nmodule.exports = function () {\n};\na.no = call((b) => {\n});\na.no = b === c;\nfunction four() {\n  var no = typeof a === 'function'\n    ? a : b;\n}\n",
            &["one 1-6", "b 2-3", "two 7-8", "three 10-11", "four 17-20"],
        ),
        (
            "a.go",
            "type (\n\tOne struct {\n\t\ta int\n\t}\n\tTwo string\n)\n\nfunc Three() {\n\tf := func() error {\n\t\treturn nil\n\t}\n}\n",
            &["One 2-4", "Two 5-5", "Three 8-12"],
        ),
        (
            "a.swift",
            "public class One {\n  public init(a: Int) {\n  }\n  override class func two() -> Int {\n    1\n  }\n}\nprotocol Three {\n  func four(_ a: Int,\n            b: Int)\n}\n",
            &["One 1-7", "init 2-3", "two 4-6", "Three 8-11", "four 9-10"],
        ),
        (
            "a.scala",
            "private[os] def one(a: Int): Int =\n  a + 1\nobject Two {\n  def three = 3\n}\n",
            &["one 1-2", "Two 3-5", "three 4-4"],
        ),
        ("a.rb", "module ::One; end\ndef two(a); a; end\ndef three\n  3\nend\n", &["One 1-1", "two 2-2", "three 3-5"]),
        (
            "a.ex",
            "defmodule One do\n  @doc \"\"\"\n  def no do\n  \"\"\"\n  def two(a),\n    do: a\n  defimpl Inspect do\n  end\nend\n",
            &["One 1-9", "two 5-6", "Inspect 7-8"],
        ),
        (
            "a.zig",
            "const std = @import(\"std\");\nnoinline fn one() void {\n    const two = 2;\n}\n",
            &["std 1-1", "one 2-4"],
        ),
        ("a.sh", "# checks (all of them\nbats::one() { # <a>\n  echo\n}\n", &["bats::one 1-4"]),
        (
            "a.rs",
            "fn one<T>()\nwhere\n    T: A,\n{\n}\nimpl<'a> Two for &'a mut Three {\n}\n",
            &["one 1-5", "Three 6-7"],
        ),
    ];
    for (path, text, expected) in cases {
        assert_eq!(found(path, text), *expected, "{path}");
    }
}

#[test]
fn any_text_is_scanned_without_a_panic() {
    for path in [
        "a.rs", "a.py", "a.js", "a.c", "a.rb", "a.md", "a.php", "a.go", "a.sh", "a.ex", "a.kt", "a.cs", "a.dart",
        "a.java", "a.swift",
    ] {
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
            "@",
            "@(",
            "[",
            "[]",
            "typedef struct {",
            "typedef struct {\n}",
            "operator",
            "x operator(",
            "fun `",
            "fun <",
            "get ",
            "it('",
            "it('é'",
            "a.",
            "é.é = ",
            "a.b = async",
            "a.b = async (é =>",
            "a.b = function",
            ">(",
            "a>(",
            "#if\n#else\n#endif\n#else",
            "@\"",
            "\"\"\"",
            "type (\n é",
            "impl<'a> &'",
            "def x,\n do:",
            "def x; end",
            "struct",
            "enum class",
        ] {
            found(path, text);
        }
    }
}
