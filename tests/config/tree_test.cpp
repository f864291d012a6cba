#include "config/tree.hpp"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace heddle::config {
namespace {

TreeNode parse(const std::string& text) {
  std::vector<TextError> errors;
  TreeNode root = parse_tree(text, 0, errors);
  EXPECT_TRUE(errors.empty()) << text << ": " << errors.front().message;
  return root;
}

struct BadText {
  std::string text;
  int line;
  int column;
  std::string message;
};

TEST(Tree, KnowsThePositionOfEveryKeyAndValue) {
  const TreeNode root = parse("a:\n  b: [1, 'x']\n  c: {d: 2}\n");
  const Entry* a = root.find("a");
  ASSERT_NE(a, nullptr);
  const Entry* b = a->value.find("b");
  const Entry* c = a->value.find("c");
  ASSERT_NE(b, nullptr);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(b->position.line, 2);
  EXPECT_EQ(b->position.column, 3);
  EXPECT_EQ(b->value.items.at(1).position.column, 10);
  EXPECT_TRUE(b->value.items.at(1).quoted);
  EXPECT_EQ(c->value.find("d")->position.column, 7);
  EXPECT_EQ(c->value.find("d")->value.position.column, 10);
}

TEST(Tree, CountsColumnsInCharactersAndIgnoresByteOrderMarkAndCarriageReturns) {
  const TreeNode root = parse("\xEF\xBB\xBF\"\xC3\xA9\xC3\xA9\": 1\r\nb: 2\r\n");
  EXPECT_EQ(root.entries.at(0).value.position.column, 7);
  EXPECT_EQ(root.entries.at(1).position.line, 2);
  EXPECT_EQ(root.entries.at(1).value.text, "2");
}

TEST(Tree, GivesAnEmptyValueThePositionOfItsKey) {
  const TreeNode root = parse("a:\n\n\nb: 1\n");
  EXPECT_EQ(root.entries.at(0).value.type, TreeNode::Type::null);
  EXPECT_EQ(root.entries.at(0).value.position.line, 1);
}

TEST(Tree, KeepsDuplicateKeys) {
  EXPECT_EQ(parse("a: 1\na: 2\n").entries.size(), 2U);
}

TEST(Tree, RefusesWhatIsNoYamlOrNoConfigurationWithItsPosition) {
  const std::vector<BadText> cases{
      {"a: 1\nb: [1, 2\nc: 3\n", 3, 2, "']' is missing"},
      {"a: {b: 1\n", 2, 1, "'}' is missing"},
      {"a: b: c\n", 1, 5, "second ': '"},
      {"a:\n\tb: 1\n", 2, 1, "tab"},
      {"a: \"open\nb: 1\n", 1, 4, "never ends"},
      {"a: 'open''\n", 1, 4, "never ends"},
      {"a: \"open\\\"", 1, 11, "illegal EOF"},
      {"'a\n: 1\n", 1, 1, "never ends"},
      {"a: &x 1\n", 1, 4, "anchors"},
      {"a: 1\nb: *x\n", 2, 4, "not valid YAML"},
      {"a: !!str 5\n", 1, 4, "tags"},
      {"a: 1\n---\nb: 2\n", 2, 1, "second document"},
      {"a: 1\n? [b, c]\n: 2\n", 2, 3, "one word"},
      {": 1\n", 1, 1, "key is missing"},
      {std::string("a: 1\nb: \0", 9), 2, 4, "byte 0x00"},
      {"a: \xC3\xA9 \xFF\n", 1, 6, "byte 0xFF"},
      {"\xFF\xFE"
       "a",
       1, 1, "byte 0xFF"},
      {"a: \x1B[0m\n", 1, 4, "byte 0x1B"},
  };
  for (const BadText& bad : cases) {
    std::vector<TextError> errors;
    static_cast<void>(parse_tree(bad.text, 0, errors));
    const std::string shown_text = shown(bad.text);
    ASSERT_EQ(errors.size(), 1U) << shown_text;
    EXPECT_EQ(errors[0].position.line, bad.line) << shown_text << errors[0].message;
    EXPECT_EQ(errors[0].position.column, bad.column) << shown_text << errors[0].message;
    EXPECT_NE(errors[0].message.find(bad.message), std::string::npos) << errors[0].message;
  }
}

TEST(Tree, RefusesDeepNestingBeforeItNeedsMuchStack) {
  std::string maps;
  for (int i = 0; i < 50'000; ++i) maps += "{a: ";
  for (const std::string& text : {std::string(200'000, '['), std::string(200'000, '{'), maps}) {
    std::vector<TextError> errors;
    static_cast<void>(parse_tree(text, 0, errors));
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].message, "lists and mappings are nested too deeply");
  }
}

TEST(Tree, SurvivesRandomText) {
  constexpr std::string_view letters = "ab: -[]{}\n\n  ,&*!|>'\"%@#?~\t0.";
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text(random() % 60, ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    std::vector<TextError> errors;
    static_cast<void>(parse_tree(text, 0, errors));
  }
}

TEST(Tree, TellsTheTypesOfScalars) {
  const auto type = [](const std::string& text) {
    TreeNode node;
    node.type = TreeNode::Type::scalar;
    node.text = text;
    return scalar_type(node);
  };
  for (const char* text : {"0", "-5", "+7", "007", "99999999999999999999"}) {
    EXPECT_EQ(type(text), ScalarType::integer) << text;
  }
  for (const char* text : {"1e4", "1.5", "-2.", ".5", "1E-3", ".nan", "-.inf", "1e999"}) {
    EXPECT_EQ(type(text), ScalarType::number) << text;
  }
  for (const char* text : {"", "-", "nan", "inf", "0x10", "1_000", "e4", "1.2.3", "--1", "yes"}) {
    EXPECT_EQ(type(text), ScalarType::text) << text;
  }
  EXPECT_EQ(type("true"), ScalarType::boolean);
}

TEST(Tree, ShowsTextOnOneBoundedLine) {
  EXPECT_EQ(shown("a\nb\x07"), "a\\nb\\x07");
  EXPECT_EQ(shown(std::string(100, 'x')), std::string(48, 'x') + "...");
  EXPECT_EQ(shown("\xFF"), "\\xFF");
}

}  // namespace
}  // namespace heddle::config
