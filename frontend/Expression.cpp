#include "frontend/Expression.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using llvm::StringRef;

namespace tenon {

namespace {

constexpr int maxDepth = 64;

bool isNameStart(char c) { return llvm::isAlpha(c) || c == '_'; }
bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_'; }

// The longest prefix that is a name, with members if `dotted`.
StringRef takeName(StringRef text, bool dotted) {
  size_t end = 0;
  while (end < text.size()) {
    bool member =
        dotted && text[end] == '.' && end && end + 1 < text.size() && isNameStart(text[end + 1]);
    if (!member && !(end ? isNameChar(text[end]) : isNameStart(text[end])))
      break;
    ++end;
  }
  return text.take_front(end);
}

// A recursive-descent evaluator: parsing and evaluating are one. What is not `live` (the branch not
// taken) is parsed without being computed, so that it cannot fail; with a visitor nothing is live.
class Evaluator {
public:
  Evaluator(StringRef text, const Place &place, const Scope *scope, NameVisitor visit)
      : rest(text), place(place), scope(scope), visit(visit) {}

  // What stands at the front of `rest`, which is advanced: "$name", or "$(...)" after "$(".
  llvm::Expected<Value> name(bool dotted);
  llvm::Expected<Value> parenthesised();

  StringRef rest;

private:
  using Result = std::optional<Value>;

  bool live() const { return !visit && !dead; }
  Result fail(const llvm::Twine &text) {
    if (message.empty())
      message = text.str();
    return std::nullopt;
  }
  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  Value make(int64_t integer) { return Value(integer, place); }
  Value make(bool flag) { return Value(flag, place); }

  Result lookUp(StringRef path);
  Result ternary();
  Result logical(int level);
  Result comparison(bool equality);
  Result sum();
  Result product();
  Result unary();
  Result postfix();
  Result call(StringRef name);
  Result primary();
  Result arithmetic(char op, const Value &lhs, const Value &rhs);

  const Place &place;
  const Scope *scope;
  NameVisitor visit;
  std::string message;
  int depth = 0, dead = 0;
};

std::optional<Value> Evaluator::lookUp(StringRef path) {
  if (visit) {
    visit(path, place);
    return Value();
  }
  for (const auto &[name, value] : scope->variables)
    if (path == name)
      return make(value);
  for (StringRef prefix = path; !prefix.empty(); prefix = prefix.rsplit('.').first) {
    const Value *value = scope->parameters->findPath(prefix);
    if (value && (prefix == path || value->isNull())) // a member of nothing is nothing
      return *value;
    if (!prefix.contains('.'))
      break;
  }
  return fail("unknown name '" + path + "'");
}

std::optional<Value> Evaluator::ternary() {
  if (++depth > maxDepth)
    return fail("nested too deeply");
  Result condition = logical(0);
  if (condition && take("?")) {
    if (live() && !condition->asFlag())
      return fail("the condition before '?' is " + condition->describe() + ", not true or false");
    bool yes = live() && *condition->asFlag(), no = live() && !yes;
    dead += no;
    Result first = ternary();
    dead -= no;
    if (!first)
      return first;
    if (!take(":"))
      return fail("expected ':'");
    dead += yes;
    Result second = ternary();
    dead -= yes;
    if (!second)
      return second;
    condition = yes ? first : second;
  }
  --depth;
  return condition;
}

// level 0: ||, 1: &&
std::optional<Value> Evaluator::logical(int level) {
  auto operand = [&] { return level == 0 ? logical(1) : comparison(true); };
  Result lhs = operand();
  while (lhs && take(level == 0 ? "||" : "&&")) {
    if (live() && !lhs->asFlag())
      return fail(lhs->describe() + " is not true or false");
    bool decided = live() && *lhs->asFlag() == (level == 0);
    dead += decided;
    Result rhs = operand();
    dead -= decided;
    if (!rhs)
      return rhs;
    if (decided)
      continue;
    if (live() && !rhs->asFlag())
      return fail(rhs->describe() + " is not true or false");
    lhs = rhs;
  }
  return lhs;
}

std::optional<Value> Evaluator::comparison(bool equality) {
  auto operand = [&] { return equality ? comparison(false) : sum(); };
  Result lhs = operand();
  while (lhs) {
    rest = rest.ltrim();
    StringRef op;
    static constexpr StringRef tokens[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (StringRef token :
         equality ? llvm::ArrayRef(tokens).take_front(2) : llvm::ArrayRef(tokens).drop_front(2))
      if (op.empty() && take(token))
        op = token;
    if (op.empty())
      break;
    Result rhs = operand();
    if (!rhs || !live())
      return rhs;
    if (equality) {
      lhs = make((*lhs == *rhs) == (op == "=="));
      continue;
    }
    if (!lhs->isNumber() || !rhs->isNumber())
      return fail("cannot compare " + lhs->describe() + " " + op + " " + rhs->describe());
    double a = lhs->getNumber(), b = rhs->getNumber();
    lhs = make(op == "<" ? a < b : op == ">" ? a > b : op == "<=" ? a <= b : a >= b);
  }
  return lhs;
}

std::optional<Value> Evaluator::sum() {
  Result lhs = product();
  while (lhs) {
    char op = take("+") ? '+' : take("-") ? '-' : 0;
    if (!op)
      break;
    Result rhs = product();
    lhs = rhs ? arithmetic(op, *lhs, *rhs) : rhs;
  }
  return lhs;
}

std::optional<Value> Evaluator::product() {
  Result lhs = unary();
  while (lhs) {
    char op = take("*") ? '*' : take("/") ? '/' : take("%") ? '%' : 0;
    if (!op)
      break;
    Result rhs = unary();
    lhs = rhs ? arithmetic(op, *lhs, *rhs) : rhs;
  }
  return lhs;
}

std::optional<Value> Evaluator::arithmetic(char op, const Value &lhs, const Value &rhs) {
  if (!live())
    return lhs;
  std::string text = lhs.print() + " " + op + " " + rhs.print();
  const int64_t *a = lhs.asInteger(), *b = rhs.asInteger();
  if (a && b) {
    if ((op == '/' || op == '%') && (*b == 0 || *b == -1))
      return *b ? arithmetic('*', op == '/' ? lhs : make(int64_t(0)), rhs)
                : fail(text + " divides by zero");
    if (op == '/' && *a % *b)
      return fail(std::to_string(*a) + " is not a multiple of " + std::to_string(*b));
    int64_t result = 0;
    bool overflow = op == '+'   ? __builtin_add_overflow(*a, *b, &result)
                    : op == '-' ? __builtin_sub_overflow(*a, *b, &result)
                    : op == '*' ? __builtin_mul_overflow(*a, *b, &result)
                                : (result = op == '/' ? *a / *b : *a % *b, false);
    return overflow ? fail(text + " does not fit 64 bits") : make(result);
  }
  if (!lhs.isNumber() || !rhs.isNumber() || op == '%')
    return fail("cannot compute " + text);
  double x = lhs.getNumber(), y = rhs.getNumber();
  double result = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
  if (!std::isfinite(result))
    return fail(text + " is not a finite number");
  return Value(result, place);
}

std::optional<Value> Evaluator::unary() {
  if (take("-")) {
    Result operand = ++depth > maxDepth ? fail("nested too deeply") : unary();
    --depth;
    return operand ? arithmetic('-', make(int64_t(0)), *operand) : operand;
  }
  rest = rest.ltrim();
  if (!rest.starts_with("!=") && take("!")) {
    Result operand = ++depth > maxDepth ? fail("nested too deeply") : unary();
    --depth;
    if (!operand || !live())
      return operand;
    return operand->asFlag() ? Result(make(!*operand->asFlag()))
                             : fail(operand->describe() + " is not true or false");
  }
  return postfix();
}

// list[index]
std::optional<Value> Evaluator::postfix() {
  Result value = primary();
  while (value && take("[")) {
    Result index = ternary();
    if (!index)
      return index;
    if (!take("]"))
      return fail("expected ']'");
    if (!live())
      continue;
    const Value::List *list = value->asList();
    if (!list)
      return fail(value->describe() + " is not a list");
    const int64_t *i = index->asInteger();
    if (!i || *i < 0 || *i >= int64_t(list->size()))
      return fail("there is no element " + index->print() + " in a list of " +
                  std::to_string(list->size()));
    value = Value((*list)[*i]);
  }
  return value;
}

// sqrt(number), ln(number), floor(number), contains(list, value): `name` has been read.
std::optional<Value> Evaluator::call(StringRef name) {
  if (!take("("))
    return fail("expected '(' after " + name);
  Result value = ternary();
  if (!value)
    return value;
  if (name == "contains") {
    if (!take(","))
      return fail("expected ','");
    Result element = ternary();
    if (!element || !take(")"))
      return element ? fail("expected ')'") : element;
    if (!live())
      return value;
    const Value::List *list = value->asList();
    if (!list && !value->isNull()) // nothing has no elements
      return fail(value->describe() + " is not a list");
    return make(list && llvm::is_contained(*list, *element));
  }
  if (!take(")"))
    return fail("expected ')'");
  if (!live())
    return value;
  double number = value->isNumber() ? value->getNumber() : -1;
  if (number < 0 || number > double(int64_t(1) << 53) || (name == "ln" && number == 0))
    return fail("cannot compute " + name + "(" + value->print() + ")");
  if (name == "ln")
    return Value(std::log(number), place);
  return name == "floor" ? make(int64_t(number)) : Value(std::sqrt(number), place);
}

std::optional<Value> Evaluator::primary() {
  if (take("(")) {
    Result value = ternary();
    return !value || take(")") ? value : fail("expected ')'");
  }
  for (char quote : {'"', '\''}) {
    if (!take(StringRef(&quote, 1)))
      continue;
    size_t end = rest.find(quote);
    if (end == StringRef::npos)
      return fail("the text has no closing quote");
    Value text(rest.take_front(end).str(), place);
    rest = rest.drop_front(end + 1);
    return text;
  }
  if (StringRef path = takeName(rest, /*dotted=*/true); !path.empty()) {
    rest = rest.drop_front(path.size());
    if (path == "true" || path == "false" || path == "null")
      return parseScalar(path, place);
    if (path == "sqrt" || path == "ln" || path == "floor" || path == "contains")
      return call(path);
    return lookUp(path);
  }
  // 12, 1.5, 1.0e-5
  size_t end = rest.find_first_not_of("0123456789.");
  StringRef digits = rest.take_front(end);
  if (!digits.empty() && rest.drop_front(digits.size()).starts_with("e")) {
    size_t exponent = rest.find_first_not_of("0123456789", digits.size() + 2);
    digits = rest.take_front(exponent);
  }
  Value number = parseScalar(digits, place);
  if (digits.empty() || !number.isNumber())
    return fail(rest.empty() ? "something is missing at the end"
                             : "unexpected '" + rest.take_front(12) + "'");
  rest = rest.drop_front(digits.size());
  return number;
}

llvm::Expected<Value> Evaluator::name(bool dotted) {
  StringRef path = takeName(rest, dotted);
  if (path.empty())
    return failAt(place, "'$' needs a name or '(' behind it; '$$' is a dollar sign");
  rest = rest.drop_front(path.size());
  if (Result value = lookUp(path))
    return std::move(*value);
  return failAt(place, message);
}

llvm::Expected<Value> Evaluator::parenthesised() {
  StringRef whole = rest;
  Result value = ternary();
  if (value && !take(")"))
    value = fail(rest.empty() ? "expected ')'" : "unexpected '" + rest.take_front(12) + "'");
  if (value) {
    value->place = place;
    return std::move(*value);
  }
  return failAt(place, message + " in $(" + whole);
}

// A string with expressions in it. `visit` is set when names are only collected.
llvm::Expected<Value> evaluateText(StringRef text, const Place &place, const Scope *scope,
                                   NameVisitor visit) {
  // The whole text is one expression: its value keeps its type.
  if (text.starts_with("$") && !text.starts_with("$$")) {
    Evaluator evaluator(text.drop_front(), place, scope, visit);
    bool parenthesised = evaluator.rest.consume_front("(");
    if (parenthesised ||
        takeName(evaluator.rest, /*dotted=*/true).size() == evaluator.rest.size()) {
      llvm::Expected<Value> value =
          parenthesised ? evaluator.parenthesised() : evaluator.name(/*dotted=*/true);
      if (!value || evaluator.rest.empty())
        return value;
    }
  }
  std::string result;
  while (!text.empty()) {
    auto [before, after] = text.split('$');
    result += before;
    if (before.size() == text.size())
      break;
    if (after.consume_front("$")) {
      result += '$';
      text = after;
      continue;
    }
    Evaluator evaluator(after, place, scope, visit);
    llvm::Expected<Value> value = evaluator.rest.consume_front("(")
                                      ? evaluator.parenthesised()
                                      : evaluator.name(/*dotted=*/false);
    if (!value)
      return value.takeError();
    if (value->asList() || value->asMap())
      return failAt(place, value->describe() + " cannot stand within text");
    result += value->asString() ? *value->asString() : value->print();
    text = evaluator.rest;
  }
  return Value(std::move(result), place);
}

} // namespace

llvm::Expected<Value> evaluate(const Value &value, const Scope &scope) {
  if (const std::string *text = value.asString())
    return evaluateText(*text, value.place, &scope, nullptr);
  if (const Value::List *list = value.asList()) {
    Value::List result;
    for (const Value &item : *list) {
      llvm::Expected<Value> element = evaluate(item, scope);
      if (!element)
        return element.takeError();
      result.push_back(std::move(*element));
    }
    return Value(std::move(result), value.place);
  }
  if (const Value::Map *map = value.asMap()) {
    Value::Map result;
    for (const Entry &entry : *map) {
      llvm::Expected<Value> element = evaluate(entry.value, scope);
      if (!element)
        return element.takeError();
      result.push_back({entry.key, entry.place, std::move(*element)});
    }
    return Value(std::move(result), value.place);
  }
  return value;
}

llvm::Error visitNames(const Value &value, NameVisitor visit) {
  if (const std::string *text = value.asString())
    return evaluateText(*text, value.place, nullptr, visit).takeError();
  if (const Value::List *list = value.asList())
    for (const Value &item : *list)
      if (llvm::Error error = visitNames(item, visit))
        return error;
  if (const Value::Map *map = value.asMap())
    for (const Entry &entry : *map)
      if (llvm::Error error = visitNames(entry.value, visit))
        return error;
  return llvm::Error::success();
}

} // namespace tenon
