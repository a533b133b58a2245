// Interfaces that operations implement; see Interfaces.td.
#ifndef TENON_IR_INTERFACES_H
#define TENON_IR_INTERFACES_H

#include "ir/Reference.h"
#include "ir/Template.h"
#include "mlir/IR/OpDefinition.h"

#include "ir/Interfaces.h.inc"

#endif // TENON_IR_INTERFACES_H
