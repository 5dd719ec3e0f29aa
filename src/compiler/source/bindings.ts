// Finds the names that a function's source binds. Minifiers shorten all of them or none.
import type { AnyNode, Pattern } from 'acorn';

/** Names that minifiers give have at most this length. */
export const SHORT_NAME = 2;

/** Whether a parameter or variable has a name that no minifier gives. Then the source is not minified. */
export function bindsLongName(root: AnyNode): boolean {
  switch (root.type) {
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      if (root.params.some(isLong)) return true;
      break;
    case 'VariableDeclarator':
      if (isLong(root.id)) return true;
      break;
    default:
  }
  return Object.values(root).some((value: unknown) => [value].flat().some((part) => isNode(part) && bindsLongName(part)));
}

function isLong(pattern: Pattern): boolean {
  switch (pattern.type) {
    case 'Identifier':
      return pattern.name.length > SHORT_NAME;
    case 'ObjectPattern':
      return pattern.properties.some((property) => isLong(property.type === 'Property' ? property.value : property.argument));
    case 'ArrayPattern':
      return pattern.elements.some((element) => element !== null && isLong(element));
    case 'AssignmentPattern':
      return isLong(pattern.left);
    case 'RestElement':
      return isLong(pattern.argument);
    default:
      return false;
  }
}

function isNode(value: unknown): value is AnyNode {
  return value !== null && typeof value === 'object' && typeof (value as { type?: unknown }).type === 'string';
}
