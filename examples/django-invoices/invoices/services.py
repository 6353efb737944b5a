"""Services and selectors: plain functions, which know neither HTTP nor MCP."""

from rest_framework_services import ServiceError

from invoices.models import Customer, Invoice, Line


def create_invoice(*, number, customer, lines, due=None):
    """Writes an invoice as a draft."""
    if Invoice.objects.filter(number=number).exists():
        raise ServiceError(f"there is an invoice {number} already")
    invoice = Invoice.objects.create(number=number, customer=customer, due=due)
    Line.objects.bulk_create(Line(invoice=invoice, **line) for line in lines)
    return invoice


def set_status(*, instance, status):
    """Moves an invoice on: from draft to sent, from sent to paid."""
    order = list(Invoice.Status)
    if order.index(status) < order.index(instance.status):
        raise ServiceError(f"invoice {instance.number} is {instance.status} already")
    instance.status = status
    instance.save(update_fields=["status"])
    return instance


def add_customer(*, name):
    """Adds a customer."""
    return {"id": Customer.objects.create(name=name).pk, "name": name}


def double(*, n):
    """Twice as much."""
    return {"doubled": n * 2}


def invoice_by_number(*, number: str):
    """One invoice, by its number."""
    return Invoice.objects.filter(number=number)


def all_invoices():
    """All invoices."""
    return Invoice.objects.all()
